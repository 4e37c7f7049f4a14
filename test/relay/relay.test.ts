import { expect, it } from "vitest";
import { serveSimulated } from "../contract/relayed-group.ts";
import { failureOf } from "../faults/scripted-group.ts";

it("carries a call to every engine and back", async () => {
  const { join } = await serveSimulated({ ranks: 2 });
  const { client, connection } = await join();
  expect(connection.engines.map(({ index, state }) => ({ index, state }))).toEqual([
    { index: 0, state: "up" },
    { index: 1, state: "up" },
  ]);
  expect(await client.isSleeping()).toMatchObject([
    { engine: 0, reply: { isSleeping: false } },
    { engine: 1, reply: { isSleeping: false } },
  ]);
  await client.pauseScheduler({ mode: "wait" });
  await expect.poll(async () => (await client.state()).engines.map(({ scheduler }) => scheduler)).toEqual(["paused", "paused"]);
  const failure = await failureOf(client.updateWeightFromDisk({ modelPath: "" }));
  expect(failure.code).toBe("refused");
});

it("tells each reply as it arrives, also of a call that fails", async () => {
  const { join } = await serveSimulated({ ranks: 2, dropReply: [{ op: "IsSleeping", rank: 1 }] });
  const { client } = await join();
  const heard: number[] = [];
  const failure = await failureOf(client.isSleeping({}, { timeoutMs: 200, onReply: ({ engine }) => heard.push(engine) }));
  expect(failure).toMatchObject({ code: "timeout", operation: "isSleeping", missing: [1], replies: [{ engine: 0 }] });
  expect(heard).toEqual([0]);
});

it("who has changed an engine sees it changed when the call has ended", async () => {
  const { join } = await serveSimulated({ ranks: 2 });
  const { client } = await join();
  for (let round = 0; round < 20; round++) {
    await client.pauseScheduler({ mode: "keep" });
    expect((await client.state()).engines.map(({ scheduler }) => scheduler)).toEqual(["frozen", "frozen"]);
    await client.resumeScheduler();
    expect((await client.state()).engines.map(({ scheduler }) => scheduler)).toEqual(["running", "running"]);
  }
  const { client: late } = await join();
  await client.pauseScheduler({ mode: "wait" });
  await expect.poll(async () => (await late.state()).engines.map(({ scheduler }) => scheduler)).toEqual(["paused", "paused"]);
});
