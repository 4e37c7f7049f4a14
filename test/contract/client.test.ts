import { describe, expect, it } from "vitest";
import { type Client, type Operation, type OperationName, operations } from "../../src/index.ts";
import { PROFILE_START, PROFILE_STOP, replyTags } from "../../src/messages.ts";
import { failureOf } from "../faults/scripted-group.ts";
import { bucket, connectSimulated, group } from "./simulated-group.ts";

/** A request for each operation that a fresh engine with a memory saver and an expert rebalance answers with success. */
const requests: { readonly [Name in OperationName]: (client: Client) => Promise<readonly unknown[]> } = {
  pauseScheduler: (client) => client.pauseScheduler({ mode: "wait" }),
  resumeScheduler: (client) => client.resumeScheduler(),
  isSchedulerPaused: (client) => client.isSchedulerPaused(),
  flushCache: (client) => client.flushCache(),
  initWeightsUpdateGroup: (client) => client.initWeightsUpdateGroup(group),
  destroyWeightsUpdateGroup: (client) => client.destroyWeightsUpdateGroup(),
  updateWeightsFromDistributed: async (client) => {
    await client.pauseScheduler();
    await client.initWeightsUpdateGroup(group);
    return client.updateWeightsFromDistributed(bucket);
  },
  updateWeightsFromTensor: (client) =>
    client.control({ $tag: "UpdateWeightsFromTensorReqInput", serializedNamedTensors: [], loadFormat: null, flushCache: true }),
  updateWeightsFromMooncake: async (client) => {
    await client.pauseScheduler();
    return client.updateWeightsFromMooncake({ version: 7, flushCache: true, weightVersion: null });
  },
  updateWeightFromDisk: async (client) => {
    await client.pauseScheduler();
    return client.updateWeightFromDisk({ modelPath: "/checkpoints/7" });
  },
  rebalanceExperts: (client) => client.rebalanceExperts(),
  releaseMemoryOccupation: (client) => client.releaseMemoryOccupation(),
  resumeMemoryOccupation: async (client) => {
    await client.releaseMemoryOccupation();
    return client.resumeMemoryOccupation();
  },
  isSleeping: (client) => client.isSleeping(),
  getInternalState: (client) => client.getInternalState(),
  setInternalState: (client) => client.setInternalState({ serverArgs: { a: 1 } }),
  profile: (client) => client.profile({ kind: PROFILE_START }),
};

describe.each([1, 2])("with %i ranks", (ranks) => {
  it.each(Object.values<Operation>(operations).map(({ name, reply }) => [name as OperationName, reply] as const))(
    "%s is answered by every engine with %s",
    async (name, reply) => {
      const { client } = await connectSimulated({ ranks, memorySaver: true, eplb: true });
      const replies = await requests[name](client);
      expect(replies).toMatchObject(Array.from({ length: ranks }, (_, engine) => ({ engine, reply: { $tag: reply } })));
    },
  );
});

it("covers every operation and every reply", () => {
  expect(Object.keys(operations)).toHaveLength(17);
  expect(Object.keys(replyTags)).toHaveLength(17);
});

it("gives each reply the right engine, with different delays and different outcomes", async () => {
  const { client } = await connectSimulated({
    ranks: 2,
    delayOp: [{ op: "IsSleeping", rank: 0, ms: 60 }],
    lateReply: [{ op: "Profile", rank: 0, ms: 60 }],
    failOp: [{ op: "Profile", rank: 1, times: 1, message: "no room for traces" }],
  });
  expect((await client.isSleeping()).map(({ engine }) => engine)).toEqual([0, 1]);
  const failure = await failureOf(client.profile({ kind: PROFILE_START }));
  expect(failure.replies).toMatchObject([
    { engine: 0, reply: { success: true } },
    { engine: 1, reply: { success: false, message: "no room for traces" } },
  ]);
  const [zero, one] = (failure.replies ?? []) as { durationMs: number }[];
  expect(zero?.durationMs).toBeGreaterThan(one?.durationMs ?? 0);
  // rank 0 profiles and rank 1 does not, which the guard knows: only one of them can stop
  expect(await failureOf(client.profile({ kind: PROFILE_STOP }))).toMatchObject({ code: "refused", engine: 1 });
  expect((await failureOf(client.profile({ kind: PROFILE_STOP }, { guard: false }))).replies).toMatchObject([
    { engine: 0, reply: { success: true } },
    { engine: 1, reply: { success: false } },
  ]);
});

it("gives a call that follows an abandoned one its own answer, 100 times", async () => {
  const { client } = await connectSimulated({ lateReply: [{ op: "PauseScheduler", ms: 15 }] });
  for (let round = 0; round < 100; round++) {
    const mode = round % 2 === 0 ? "keep" : "wait";
    expect((await failureOf(client.pauseScheduler({ mode }, { timeoutMs: 10 }))).code).toBe("timeout");
    await client.pauseScheduler({ mode: "wait" }, { timeoutMs: 20_000 });
  }
  expect(client.connection.counts).toMatchObject({ lateReplies: 100, unexpectedReplies: 0, lostReplies: 0 });
});

it("goes on after a lost reply as soon as later answers prove the loss", async () => {
  const { client } = await connectSimulated({ dropReply: [{ op: "IsSleeping", times: 1 }] });
  expect((await failureOf(client.isSleeping({}, { timeoutMs: 100 }))).code).toBe("timeout");
  const waiting = client.isSleeping({}, { timeoutMs: 20_000 });
  await client.isSchedulerPaused();
  await client.isSchedulerPaused();
  expect(await waiting).toMatchObject([{ reply: { isSleeping: false } }]);
  expect(client.connection.counts.lostReplies).toBe(1);
});

it("ends calls at once when an engine crashes, with and without a word", async () => {
  for (const rule of [
    { crashOp: [{ op: "UpdateWeightFromDisk" }] },
    { faultOp: [{ op: "UpdateWeightFromDisk", message: "CUDA error" }] },
  ]) {
    const { client } = await connectSimulated({ ranks: 2, ...rule });
    expect((await failureOf(client.updateWeightFromDisk({ modelPath: "/m" }, { guard: false }))).code).toBe("engine_dead");
  }
});

it("leaves the weights of all ranks equal after a whole step", async () => {
  const { client, engine } = await connectSimulated({ ranks: 2, memorySaver: true });
  await client.pauseScheduler({ mode: "wait" });
  await client.initWeightsUpdateGroup(group);
  await client.updateWeightsFromDistributed({ ...bucket, flushCache: false });
  await client.updateWeightsFromDistributed({ ...bucket, names: ["v"], weightVersion: "step-1" });
  await client.flushCache();
  await client.resumeScheduler();
  expect(engine.state(0).weights).toMatchObject({ version: "step-1", updates: 2 });
  expect(engine.state(1).weights).toEqual(engine.state(0).weights);
});

it("tells each reply as it arrives", async () => {
  const { client } = await connectSimulated({ ranks: 2, lateReply: [{ op: "IsSleeping", rank: 1, ms: 150 }] });
  const heard: number[] = [];
  let settled = false;
  const call = client.isSleeping({}, { onReply: ({ engine }) => heard.push(settled ? -1 : engine) }).finally(() => {
    settled = true;
  });
  await expect.poll(() => heard).toEqual([0]);
  expect(settled).toBe(false);
  await call;
  expect(heard).toEqual([0, 1]);
});
