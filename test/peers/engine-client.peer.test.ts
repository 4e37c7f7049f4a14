import { describe, expect, test } from "vitest";
import { type Client, type GuardRule, guardTable, operations } from "../../src/index.ts";
import { type ControlRequestInit, PROFILE_START, PROFILE_STOP } from "../../src/messages.ts";
import { failureOf } from "../faults/scripted-group.ts";
import { realEngine, realGroup } from "./real-group.ts";

const said = { success: true, message: "" };
// the text of the device, which is a stand-in
const device = { success: true, message: expect.any(String) };
const group = { masterAddress: "127.0.0.1", masterPort: 29_500, rankOffset: 1, worldSize: 3 };
const bucket = { names: ["w"], dtypeNames: ["bfloat16"], shapes: [[4, 4]], weightVersion: "2" };

/** Every operation, in an order in which the engine does them, and what it answers (`wire/tokenspeed-engine.md`). */
const session: readonly (readonly [request: ControlRequestInit, reply: object])[] = [
  [{ $tag: "IsSchedulerPausedReqInput" }, { isPaused: false }],
  [{ $tag: "PauseSchedulerReqInput", mode: "wait" }, said],
  [{ $tag: "PauseSchedulerReqInput" }, said],
  [{ $tag: "IsSchedulerPausedReqInput" }, { isPaused: true }],
  [{ $tag: "InitWeightsUpdateGroupReqInput", ...group }, device],
  [{ $tag: "UpdateWeightsFromDistributedReqInput", ...bucket }, device],
  [{ $tag: "DestroyWeightsUpdateGroupReqInput" }, device],
  [
    { $tag: "UpdateWeightFromDiskReqInput", modelPath: "/ckpt", weightVersion: "3" },
    { ...device, numPausedRequests: 0 },
  ],
  [{ $tag: "UpdateWeightsFromMooncakeReqInput", version: 7, flushCache: true, weightVersion: null }, device],
  [
    { $tag: "UpdateWeightsFromTensorReqInput", serializedNamedTensors: [Uint8Array.of(1)], loadFormat: null, flushCache: true },
    { success: false, message: "update_weights_from_tensor is not supported on this engine" },
  ],
  [{ $tag: "FlushCacheReqInput" }, { success: true }],
  [{ $tag: "ResumeSchedulerReqInput" }, said],
  [{ $tag: "ReleaseMemoryOccupationReqInput", tags: ["weights"] }, said],
  [
    { $tag: "ReleaseMemoryOccupationReqInput", tags: ["weights"] },
    { success: false, message: 'tags already released: ["weights"]' },
  ],
  [{ $tag: "IsSleepingReqInput" }, { isSleeping: true }],
  [
    { $tag: "ResumeSchedulerReqInput" },
    { success: false, message: "memory is released; call resume_memory_occupation to wake before resuming the scheduler" },
  ],
  [{ $tag: "PauseSchedulerReqInput" }, { success: false, message: "memory is unavailable; use resume_memory_occupation" }],
  [{ $tag: "ResumeMemoryOccupationReqInput" }, said],
  [{ $tag: "IsSleepingReqInput" }, { isSleeping: false }],
  [{ $tag: "GetInternalStateReq" }, { internalState: {} }],
  [
    { $tag: "SetInternalStateReq", serverArgs: { x: [1, { y: null }] } },
    { updated: false, serverArgs: {} },
  ],
  [
    { $tag: "ProfileReq", kind: PROFILE_START },
    { success: true, message: "Succeeded" },
  ],
  [
    { $tag: "ProfileReq", kind: PROFILE_STOP },
    { success: true, message: "Succeeded." },
  ],
  [{ $tag: "RebalanceExpertsReqInput" }, { success: true, message: "expert load snapshot taken; the placement commits after 3 forwards" }],
];

/** How an engine gets into the conditions of the guard's table of which it says itself that it refuses. */
const entered: { readonly [When in GuardRule["when"]]?: (client: Client) => Promise<unknown> } = {
  "has memory released": (client) => client.releaseMemoryOccupation(),
  "has memory released, and no tags are named": (client) => client.releaseMemoryOccupation({ tags: ["weights"] }),
  "has a named region released": (client) => client.releaseMemoryOccupation({ tags: ["weights"] }),
  "has a named region resident": (client) => client.releaseMemoryOccupation({ tags: ["kv_cache"] }),
  "profiles, and a start is asked": (client) => client.profile({ kind: PROFILE_START }),
  "does not profile, and a stop is asked": async () => {},
};

/** The request that a rule is about. */
function requestOf({ when }: GuardRule, name: string): ControlRequestInit {
  const $tag = Object.values(operations).find((operation) => operation.name === name)?.request;
  const tags = when.includes("named region") ? { tags: ["weights"] } : {};
  const kind = $tag === "ProfileReq" ? { kind: when.includes("start") ? PROFILE_START : PROFILE_STOP } : {};
  return { $tag, ...tags, ...kind } as ControlRequestInit;
}

const refusedByEngines = guardTable
  .filter(({ because }) => because.startsWith("the engine refuses"))
  .flatMap((rule) => rule.operations.map((name) => ({ rule, name })));
const testable = refusedByEngines.filter(({ rule }) => !rule.when.startsWith("drains"));

describe.skipIf(realEngine === undefined)("our client and the real engine", () => {
  test("all 17 operations with 2 ranks", async () => {
    const { client } = await realGroup(2, { memorySaver: true, eplb: true }, { guard: false });
    for (const [index, [request, reply]] of session.entries()) {
      // alternately through the client, and with a request id, which the engine never echoes
      const answers = index % 2 === 0 ? await client.control(request) : await client.connection.call({ ...request, rid: "r" });
      const $tag = Object.values(operations).find((operation) => operation.request === request.$tag)?.reply;
      const wanted = { $tag, rid: null, httpWorkerIpc: null, ...reply };
      expect(answers, request.$tag).toEqual([0, 1].map((engine) => ({ engine, reply: wanted, durationMs: expect.any(Number) })));
    }
    expect(new Set(session.map(([{ $tag }]) => $tag)).size).toBe(17);
    const quiet = {
      lateReplies: 0,
      lostReplies: 0,
      unexpectedReplies: 0,
      unknownTags: 0,
      malformedMessages: 0,
      unexpectedMessages: 0,
      unexpectedOutputs: 0,
    };
    expect(client.connection.counts).toEqual(quiet);
  });

  test("the guard lets a distributed update pass, several times", async () => {
    const { client } = await realGroup(2, { memorySaver: true });
    await client.initWeightsUpdateGroup(group);
    for (let step = 1; step <= 3; step++) {
      await client.pauseScheduler({ mode: "wait" });
      await client.updateWeightsFromDistributed({ ...bucket, flushCache: false, weightVersion: null });
      await client.updateWeightsFromDistributed({ ...bucket, weightVersion: String(step) });
      await client.flushCache();
      await client.resumeScheduler();
    }
    await client.destroyWeightsUpdateGroup();
    const { engines } = await client.state({ refresh: true });
    expect(engines).toMatchObject(
      [0, 1].map((engine) => ({ engine, scheduler: "running", weightGroup: "none", isPaused: false, isSleeping: false })),
    );
  });

  test("the guard lets a colocated sleep pass, several times", async () => {
    const { client } = await realGroup(2, { memorySaver: true });
    for (let step = 1; step <= 3; step++) {
      await client.pauseScheduler({ mode: "wait" });
      await client.releaseMemoryOccupation();
      await client.resumeMemoryOccupation({ tags: ["weights"] });
      await client.updateWeightFromDisk({ modelPath: `/step-${step}`, weightVersion: String(step) });
      await client.resumeMemoryOccupation({ tags: ["kv_cache"] });
    }
    const { engines } = await client.state({ refresh: true });
    expect(engines).toMatchObject([0, 1].map((engine) => ({ engine, scheduler: "running", isPaused: false, isSleeping: false })));
  });

  test("engines left in different states are brought together again", async () => {
    const { client } = await realGroup(2, { memorySaver: true });
    await client.releaseMemoryOccupation({}, { engines: [0] });
    await client.pauseScheduler({ mode: "keep" }, { engines: [1] });
    expect((await client.state({ refresh: true })).disagreements.length).toBeGreaterThan(0);
    expect(await client.reconcile({ target: "running" })).toMatchObject([
      { engine: 0, did: ["resumeMemoryOccupation"], reached: true },
      { engine: 1, did: ["resumeScheduler"], reached: true },
    ]);
    expect((await client.reconcile({ target: "paused" })).map(({ reached }) => reached)).toEqual([true, true]);
    expect((await client.state({ refresh: true })).agree).toBe(true);
  });

  test.each(testable.map(({ rule, name }) => [name, rule.when, rule] as const))(
    "the engine refuses a %s while it %s, as the guard says",
    async (name, _, rule) => {
      const { client } = await realGroup(2, { memorySaver: true });
      await (entered[rule.when] ?? expect.unreachable(`nothing brings an engine to "${rule.when}"`))(client);
      const request = requestOf(rule, name);
      expect((await failureOf(client.control(request))).code).toBe("refused");
      for (const { reply } of await client.control(request, { guard: false })) expect(reply).toMatchObject({ success: false });
    },
  );

  test("only refusals of an engine that drains are left out", () => {
    expect(testable.length).toBeGreaterThanOrEqual(7);
    expect(refusedByEngines.length - testable.length).toBe(2);
    console.log(`real engine: ${testable.length} rows of the guard's table, ${refusedByEngines.length - testable.length} left out`);
  });
});
