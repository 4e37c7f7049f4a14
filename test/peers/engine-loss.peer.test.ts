import { describe, expect, test } from "vitest";
import type { ConnectionEvent } from "../../src/index.ts";
import { failureOf } from "../faults/scripted-group.ts";
import { realEngine, realGroup } from "./real-group.ts";

const slowLoad = { trace: true, delayOp: [{ op: "UpdateWeightFromDisk", ms: 60_000 }] };
const rounds = 20;

/** The events up to the one that ends each of so many engines. */
async function deathsOf(
  events: AsyncIterable<ConnectionEvent>,
  count: number,
): Promise<Extract<ConnectionEvent, { type: "engine_dead" }>[]> {
  const deaths: Extract<ConnectionEvent, { type: "engine_dead" }>[] = [];
  for await (const event of events) {
    if (event.type === "engine_dead") deaths.push(event);
    if (deaths.length === count) break;
  }
  return deaths.sort((one, other) => one.engine - other.engine);
}

describe.skipIf(realEngine === undefined)("our client loses the real engine, or gives up on it", () => {
  test("SIGKILL during a call: the call ends with engine_dead, long before its deadline", async () => {
    const { client, engine } = await realGroup(2, slowLoad, { guard: false });
    const deaths = deathsOf(client.connection.events(), 2);
    const load = failureOf(client.updateWeightFromDisk({ modelPath: "/m" }, { timeoutMs: 600_000 }));
    const asked = failureOf(client.isSleeping({}, { timeoutMs: 600_000 }));
    await engine.line(({ event }) => event === "delay");
    await engine.stop("SIGKILL");
    // the deadlines are ten minutes, the test's own is two
    expect(await load).toMatchObject({ code: "engine_dead", stage: "reply", missing: [0, 1] });
    expect(await asked).toMatchObject({ code: "engine_dead", stage: "reply" });
    expect(await deaths).toMatchObject(
      [0, 1].map((index) => ({ engine: index, error: { message: expect.stringContaining("its connection ended") } })),
    );
    expect(client.connection.engines.map(({ state }) => state)).toEqual(["dead", "dead"]);
    expect(await failureOf(client.isSleeping())).toMatchObject({ code: "engine_dead", stage: "queue" });
  });

  test("SIGTERM: every rank says so by its sentinel", async () => {
    const { client, engine } = await realGroup(2);
    const deaths = deathsOf(client.connection.events(), 2);
    await client.isSleeping();
    await engine.stop("SIGTERM");
    expect(await deaths).toMatchObject(
      [0, 1].map((index) => ({ engine: index, error: { message: expect.stringContaining("it shut down") } })),
    );
    expect(await engine.exited).toEqual({ code: 0, signal: null });
  });

  test("a device error ends the group: the load and everything after it fails", async () => {
    const { client } = await realGroup(2, { faultOp: [{ op: "UpdateWeightFromDisk", rank: 1, message: "CUDA error" }] }, { guard: false });
    expect(await failureOf(client.updateWeightFromDisk({ modelPath: "/m" }))).toMatchObject({ code: "engine_dead", stage: "reply" });
  });

  test("a call given up does not give its answer to the next one, 20 times in a row", async () => {
    const { client } = await realGroup(2, { delayOp: [{ op: "UpdateWeightFromDisk", ms: 20 }] }, { guard: false });
    for (let round = 0; round < rounds; round++) {
      const aborted = new AbortController();
      const given = failureOf(client.updateWeightFromDisk({ modelPath: `/abandoned-${round}` }, { signal: aborted.signal }));
      aborted.abort();
      // half of a gated operation is never taken back: both engines get it, and both owe its reply
      expect((await given).code).toBe("aborted");
      const replies = await client.updateWeightFromDisk({ modelPath: `/wanted-${round}` });
      for (const { reply } of replies) expect(reply.message).toContain(`/wanted-${round}`);
    }
    // every abandoned reply came, was seen, and settled nothing
    expect(client.connection.counts).toMatchObject({ lateReplies: 2 * rounds, lostReplies: 0, unexpectedReplies: 0 });
  });

  test("the same for a question: 20 times given up while paused, asked again while running", async () => {
    const { client } = await realGroup(2, { delayOp: [{ op: "IsSchedulerPaused", ms: 10 }] }, { guard: false });
    for (let round = 0; round < rounds; round++) {
      await client.pauseScheduler({ mode: "keep" });
      const aborted = new AbortController();
      const given = failureOf(client.isSchedulerPaused({}, { signal: aborted.signal }));
      aborted.abort();
      // handed to the first engine already, taken back from the second
      expect((await given).code).toBe("aborted");
      await client.resumeScheduler();
      for (const { reply } of await client.isSchedulerPaused()) expect(reply.isPaused).toBe(false);
    }
    expect(client.connection.counts).toMatchObject({ lateReplies: rounds, lostReplies: 0, unexpectedReplies: 0 });
  });

  test("a reply that never comes holds its lane until a later answer proves it lost", async () => {
    const { client } = await realGroup(2, { dropReply: [{ op: "GetInternalState", rank: 1, times: 1 }] }, { guard: false });
    const lost = failureOf(client.getInternalState({}, { timeoutMs: 200 }));
    expect(await lost).toMatchObject({ code: "timeout", stage: "reply", missing: [1], replies: [{ engine: 0 }] });
    await client.isSleeping();
    await client.isSleeping();
    expect(await client.getInternalState()).toHaveLength(2);
    expect(client.connection.counts).toMatchObject({ lateReplies: 0, lostReplies: 1, unexpectedReplies: 0 });
  });
});
