import { expect, it } from "vitest";
import { failureOf } from "../faults/scripted-group.ts";
import { bucket, connectSimulated, group } from "./simulated-group.ts";

it("says what every engine is in, and where they disagree", async () => {
  const { client } = await connectSimulated({ ranks: 2, memorySaver: true });
  expect(await client.state({ refresh: true })).toMatchObject({
    agree: true,
    disagreements: [],
    engines: [
      { engine: 0, scheduler: "running", isPaused: false, isSleeping: false, weightGroup: "none", profiler: "off" },
      { engine: 1, scheduler: "running" },
    ],
  });
  await client.pauseScheduler({ mode: "wait" }, { engines: [1] });
  const { agree, disagreements } = await client.state({ refresh: true });
  expect(agree).toBe(false);
  expect(disagreements).toEqual(["scheduler: running on 0; paused on 1", "isPaused: false on 0; true on 1"]);
});

it("asks nobody without `refresh`, and corrects what it believes with it", async () => {
  const { client, engine } = await connectSimulated({ lateReply: [{ op: "ResumeScheduler", times: 1, ms: 60_000 }] });
  await client.pauseScheduler({ mode: "keep" });
  expect((await failureOf(client.resumeScheduler({}, { timeoutMs: 40 }))).code).toBe("timeout");
  const asked = engine.state().received.get("IsSchedulerPaused");
  expect(await client.state()).toMatchObject({ engines: [{ scheduler: "unknown" }] });
  expect(engine.state().received.get("IsSchedulerPaused")).toBe(asked);
  expect(await client.state({ refresh: true })).toMatchObject({ engines: [{ scheduler: "running", isPaused: false }] });
});

it("brings stragglers to running, and says what it did to each", async () => {
  const { client } = await connectSimulated({ ranks: 4, memorySaver: true });
  await client.pauseScheduler({ mode: "keep" }, { engines: [1] });
  await client.releaseMemoryOccupation({}, { engines: [2] });
  await client.pauseScheduler({ mode: "wait" }, { engines: [3] });
  const done = await client.reconcile({ target: "running" });
  expect(done.map(({ engine, did, reached, before, after }) => [engine, before.scheduler, did, after.scheduler, reached])).toEqual([
    [0, "running", [], "running", true],
    [1, "frozen", ["resumeScheduler"], "running", true],
    [2, "asleep", ["resumeMemoryOccupation"], "running", true],
    [3, "paused", ["resumeScheduler"], "running", true],
  ]);
  expect(await client.state({ refresh: true })).toMatchObject({ agree: true });
});

it("brings stragglers to paused", async () => {
  const { client } = await connectSimulated({ ranks: 4, memorySaver: true });
  await client.pauseScheduler({ mode: "keep" }, { engines: [1] });
  await client.releaseMemoryOccupation({ tags: ["weights"] }, { engines: [2] });
  await client.pauseScheduler({ mode: "abort" }, { engines: [3] });
  const done = await client.reconcile({ target: "paused" });
  expect(done.map(({ engine, did, reached, after }) => [engine, did, after.scheduler, reached])).toEqual([
    [0, ["pauseScheduler"], "paused", true],
    [1, ["pauseScheduler"], "paused", true],
    [2, ["resumeMemoryOccupation", "pauseScheduler"], "paused", true],
    [3, [], "paused", true],
  ]);
});

it("recovers from a pause that only one engine answered", async () => {
  const { client } = await connectSimulated({ ranks: 2, lateReply: [{ op: "PauseScheduler", rank: 1, times: 1, ms: 150 }] });
  const failure = await failureOf(client.pauseScheduler({ mode: "wait" }, { timeoutMs: 40 }));
  expect(failure).toMatchObject({ code: "timeout", missing: [1] });
  const done = await client.reconcile({ target: "paused" });
  expect(done.every(({ reached }) => reached)).toBe(true);
  expect(done[0]?.did).toEqual([]);
});

it("reports an engine that cannot be reached, and brings the others there all the same", async () => {
  const { client } = await connectSimulated({ ranks: 2, dropReply: [{ op: "IsSleeping", rank: 0 }] });
  await client.pauseScheduler({ mode: "keep" }, { engines: [1] });
  const [lost, brought] = await client.reconcile({ target: "running", timeoutMs: 100 });
  expect(lost).toMatchObject({ engine: 0, did: [], reached: false, error: { code: "timeout" } });
  expect(brought).toMatchObject({ engine: 1, did: ["resumeScheduler"], reached: true });
  const { agree, disagreements } = await client.state({ refresh: true, timeoutMs: 100 });
  expect(agree).toBe(false);
  expect(disagreements[0]).toContain("engine 0 could not be asked");
});

it("never repeats a state change by itself", async () => {
  const { client, engine } = await connectSimulated({
    ranks: 2,
    failOp: [{ op: "UpdateWeightsFromDistributed", rank: 0, message: "NCCL" }],
  });
  await client.pauseScheduler();
  await client.initWeightsUpdateGroup(group);
  expect((await failureOf(client.updateWeightsFromDistributed(bucket))).code).toBe("operation_failed");
  await client.state({ refresh: true });
  expect(engine.state(0).received.get("UpdateWeightsFromDistributed")).toBe(1);
});
