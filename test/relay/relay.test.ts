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
