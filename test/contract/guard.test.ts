import { describe, expect, it } from "vitest";
import { type Client, type ClientCallOptions, type GuardRule, guardTable, type OperationName } from "../../src/index.ts";
import { PROFILE_START, PROFILE_STOP } from "../../src/messages.ts";
import type { SimulatedEngineOptions } from "../../src/testing/index.ts";
import { failureOf } from "../faults/scripted-group.ts";
import { bucket, connectSimulated, group } from "./simulated-group.ts";

type Setup = { readonly engine?: Partial<SimulatedEngineOptions>; readonly enter?: (client: Client) => Promise<unknown> };
const given = async (promise: Promise<unknown>) => expect((await failureOf(promise)).code).toBe("timeout");

/** How engines get into each condition of the table. */
const setups: { readonly [When in GuardRule["when"]]: Setup } = {
  "runs requests": { enter: (client) => client.initWeightsUpdateGroup(group) },
  "drains a pause": {
    engine: { lateReply: [{ op: "PauseScheduler", rank: 1, ms: 60_000 }] },
    enter: (client) => given(client.pauseScheduler({ mode: "wait" }, { timeoutMs: 30 })),
  },
  "drains a release": {
    engine: { lateReply: [{ op: "ReleaseMemoryOccupation", ms: 60_000 }] },
    enter: (client) => given(client.releaseMemoryOccupation({}, { timeoutMs: 30 })),
  },
  "is frozen by keep": { enter: (client) => client.pauseScheduler({ mode: "keep" }) },
  "is frozen by keep, and the caches are to be flushed": { enter: (client) => client.pauseScheduler({ mode: "keep" }) },
  "has memory released": { enter: (client) => client.releaseMemoryOccupation() },
  "has memory released, and no tags are named": { enter: (client) => client.releaseMemoryOccupation({ tags: ["weights"] }) },
  "has its weights or nccl memory released": { enter: (client) => client.releaseMemoryOccupation({ tags: ["weights"] }) },
  "has no memory released": {},
  "has a named region released": { enter: (client) => client.releaseMemoryOccupation({ tags: ["weights"] }) },
  "has a named region resident": { enter: (client) => client.releaseMemoryOccupation({ tags: ["kv_cache"] }) },
  "is in a weight update group": { enter: (client) => client.initWeightsUpdateGroup(group) },
  "is in no weight update group": { enter: (client) => client.pauseScheduler() },
  "profiles, and a start is asked": { enter: (client) => client.profile({ kind: PROFILE_START }) },
  "does not profile, and a stop is asked": {},
};

/** The call that the rule is about. */
function attempt(client: Client, { when }: GuardRule, name: OperationName, options: ClientCallOptions = {}): Promise<unknown> {
  switch (name) {
    case "releaseMemoryOccupation":
    case "resumeMemoryOccupation":
      return client[name](when.includes("named region") ? { tags: ["weights"] } : {}, options);
    case "updateWeightsFromDistributed":
      return client.updateWeightsFromDistributed(bucket, options);
    case "updateWeightsFromMooncake":
      return client.updateWeightsFromMooncake({ version: 1, flushCache: true, weightVersion: null }, options);
    case "updateWeightFromDisk":
      return client.updateWeightFromDisk({ modelPath: "/m" }, options);
    case "initWeightsUpdateGroup":
      return client.initWeightsUpdateGroup(group, options);
    case "profile":
      return client.profile({ kind: when.includes("start") ? PROFILE_START : PROFILE_STOP }, options);
    case "pauseScheduler":
      return client.pauseScheduler({ mode: "wait" }, options);
    case "resumeScheduler":
      return client.resumeScheduler({}, options);
    default:
      throw new Error(`no attempt for ${name}`);
  }
}

const rows = guardTable.flatMap((rule) => rule.operations.map((name) => ({ rule, name, title: `${name} while the engine ${rule.when}` })));

describe("the guard refuses", () => {
  it.each(rows)("$title", async ({ rule, name }) => {
    const { engine: engineOptions, enter } = setups[rule.when];
    const { client, engine } = await connectSimulated({ ranks: 2, memorySaver: true, ...engineOptions });
    await enter?.(client);
    const received = () => [0, 1].map((rank) => new Map(engine.state(rank).received));
    const before = received();
    const failure = await failureOf(attempt(client, rule, name));
    expect(failure).toMatchObject({ code: "refused", operation: name });
    expect(failure.message).toContain(rule.remedy);
    expect(received()).toEqual(before);
  });
});

describe("what the guard refuses, the engine refuses too, where the table says so", () => {
  it.each(rows.filter(({ rule }) => rule.because.startsWith("the engine refuses") && !rule.when.startsWith("drains")))(
    "$title",
    async ({ rule, name }) => {
      const { engine: engineOptions, enter } = setups[rule.when];
      const { client } = await connectSimulated({ ranks: 1, memorySaver: true, ...engineOptions });
      await enter?.(client);
      expect((await failureOf(attempt(client, rule, name, { guard: false }))).code).toBe("operation_failed");
    },
  );
});

it("lets a whole step pass: distributed update, then sleep and wake", async () => {
  const { client } = await connectSimulated({ ranks: 2, memorySaver: true });
  await client.initWeightsUpdateGroup(group);
  for (let step = 1; step <= 2; step++) {
    await client.pauseScheduler({ mode: "wait" });
    await client.updateWeightsFromDistributed({ ...bucket, flushCache: false });
    await client.flushCache();
    await client.resumeScheduler();
    await client.releaseMemoryOccupation();
    await client.resumeMemoryOccupation({ tags: ["weights"] });
    await client.updateWeightFromDisk({ modelPath: "/m", flushCache: false });
    await client.resumeMemoryOccupation({ tags: ["kv_cache"] });
    await client.pauseScheduler({ mode: "keep" });
    await client.updateWeightFromDisk({ modelPath: "/m", flushCache: false });
    await client.resumeScheduler();
    await client.profile({ kind: PROFILE_START });
    await client.profile({ kind: PROFILE_STOP });
  }
  await client.destroyWeightsUpdateGroup();
});

it("lets one state-changing call be under way, the others in order behind it, and queries beside them", async () => {
  const { client } = await connectSimulated({ ranks: 2, lateReply: [{ op: "PauseScheduler", times: 1, ms: 80 }] });
  const ended: string[] = [];
  const note = (name: string) => () => void ended.push(name);
  const pause = client.pauseScheduler({ mode: "wait" }).then(note("pause"));
  const load = client.updateWeightFromDisk({ modelPath: "/m" }).then(note("load"));
  const flush = client.flushCache().then(note("flush"));
  await client.isSchedulerPaused().then(note("query"));
  await Promise.all([pause, load, flush]);
  expect(ended).toEqual(["query", "pause", "load", "flush"]);
});

it("lets a resume end a drain instead of waiting for it", async () => {
  const { client } = await connectSimulated({ lateReply: [{ op: "PauseScheduler", times: 1, ms: 60_000 }] });
  await given(client.pauseScheduler({ mode: "wait" }, { timeoutMs: 30 }));
  const second = failureOf(client.pauseScheduler({ mode: "wait" }, { timeoutMs: 200 }));
  await client.resumeScheduler();
  expect((await second).code).toBe("previous_call_pending");
});

it("gives up a call that waits for another, unsent, at its deadline or signal", async () => {
  const { client, engine } = await connectSimulated({ lateReply: [{ op: "PauseScheduler", times: 1, ms: 400 }] });
  const pause = client.pauseScheduler({ mode: "wait" });
  const late = failureOf(client.flushCache({}, { timeoutMs: 30 }));
  const controller = new AbortController();
  const aborted = failureOf(client.flushCache({}, { signal: controller.signal }));
  controller.abort("enough");
  expect(await aborted).toMatchObject({ code: "aborted", stage: "queue", cause: "enough" });
  expect(await late).toMatchObject({ code: "timeout", stage: "queue" });
  expect((await late).message).toContain("pauseScheduler is still under way");
  await pause;
  await client.flushCache();
  expect(engine.state().received.get("FlushCache")).toBe(1);
});

it("ends calls that wait for another with `closed` when the connection closes", async () => {
  const { client } = await connectSimulated({ lateReply: [{ op: "PauseScheduler", times: 1, ms: 60_000 }] });
  const calls = [
    client.pauseScheduler({ mode: "wait" }),
    client.updateWeightFromDisk({ modelPath: "/m" }),
    client.releaseMemoryOccupation(),
  ];
  const codes = Promise.all(calls.map(async (call) => (await failureOf(call)).code));
  await client.close();
  expect(await codes).toEqual(["closed", "closed", "closed"]);
});

it("learns from a late reply", async () => {
  const { client } = await connectSimulated({ lateReply: [{ op: "PauseScheduler", times: 1, ms: 60 }] });
  const events = client.connection.events();
  await given(client.pauseScheduler({ mode: "wait" }, { timeoutMs: 20 }));
  expect((await client.state()).engines[0]).toMatchObject({ draining: "pause" });
  await events.next();
  await client.updateWeightFromDisk({ modelPath: "/m" });
  expect((await client.state()).engines[0]).toMatchObject({ scheduler: "paused" });
});

it("is off for a client, and on again for a call", async () => {
  const { client } = await connectSimulated({}, { guard: false });
  await client.updateWeightFromDisk({ modelPath: "/m" });
  expect((await failureOf(client.updateWeightFromDisk({ modelPath: "/m" }, { guard: true }))).code).toBe("refused");
});

it("tells a call that waits what it waits for, and whose it is", async () => {
  const { client } = await connectSimulated({ lateReply: [{ op: "FlushCache", ms: 200 }] });
  const heard: string[] = [];
  const first = client.flushCache({}, { caller: "trainer" });
  const onWait = (holder: string) => heard.push(holder);
  const failure = await failureOf(client.flushCache({}, { timeoutMs: 20, onWait }));
  expect(heard).toEqual(["flushCache of trainer"]);
  expect(failure).toMatchObject({ code: "timeout", message: expect.stringContaining("flushCache of trainer is still under way") });
  await first;
  await client.flushCache({}, { onWait });
  expect(heard).toHaveLength(1);
});
