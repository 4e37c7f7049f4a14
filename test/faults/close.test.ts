import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { connectScripted, failureOf } from "./scripted-group.ts";

it("fails what is pending, queued or new with `closed`, and closes once", async () => {
  const { client, engines } = await connectScripted(1);
  const events = client.connection.events();
  const out = failureOf(client.isSleeping());
  const queued = failureOf(client.isSleeping());
  await engines[0]?.receive();
  await Promise.all([client.close("the run is over"), client.close("again"), client[Symbol.asyncDispose]()]);
  expect(await out).toMatchObject({ code: "closed", stage: "reply", missing: [0] });
  expect(await queued).toMatchObject({ code: "closed", stage: "queue" });
  expect((await failureOf(client.isSleeping())).message).toContain("the connection is closed (the run is over)");
  expect(await client.connection.closed).toEqual({ reason: "the run is over" });
  expect(await events.next()).toMatchObject({ value: { type: "closed", reason: { reason: "the run is over" } } });
  expect(await events.next()).toMatchObject({ done: true });
  expect(await client.connection.events().next()).toMatchObject({ done: true });
});

it("is what `await using` does", async () => {
  const { client } = await connectScripted(1);
  {
    await using scoped = client;
    expect(scoped.connection.engines).toHaveLength(1);
  }
  expect((await failureOf(client.isSleeping())).code).toBe("closed");
});

it.each(["answered", "pending", "engine gone", "accept failed", "listener only"])(
  "leaves a process that exits by itself: %s",
  async (scenario) => {
    const program = fileURLToPath(new URL("exiting-program.ts", import.meta.url));
    const run = promisify(execFile)(process.execPath, ["--import", "tsx", program, scenario], { timeout: 30_000 });
    expect((await run).stdout).toBe("closed\n");
  },
);
