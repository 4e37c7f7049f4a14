import { readFileSync } from "node:fs";
import { join } from "node:path";
import { encode } from "@msgpack/msgpack";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type Client, createClient, type Operation, type OperationName, operations } from "../../src/index.ts";
import { type ControlRequestInit, encodeControlReplySlim, PROFILE_START, PROFILE_STOP } from "../../src/messages.ts";
import { bind } from "../../src/node/index.ts";
import { type EngineEvent, type SimulatedEngineOptions, startEngine } from "../../src/testing/index.ts";
import { failureOf } from "../faults/scripted-group.ts";
import { LineProcess } from "../peers/sim-engine-process.ts";
import { RawFrontend } from "./engine-frontend.ts";
import { connectMixed } from "./mixed-group.ts";
import { bucket, connectSimulated, group } from "./simulated-group.ts";

const known = Object.values<Operation>(operations);
const sayable = known.filter(({ slim }) => slim !== undefined).map(({ name }) => name as OperationName);
const unsayable = known.filter(({ slim }) => slim === undefined);

/** Calls that succeed on a fresh group, by the operation they show. */
const calls: { readonly [Name in OperationName]?: (client: Client) => Promise<readonly unknown[]> } = {
  pauseScheduler: (client) => client.pauseScheduler(),
  resumeScheduler: async (client) => {
    await client.pauseScheduler({ mode: "keep" });
    return client.resumeScheduler();
  },
  flushCache: (client) => client.flushCache(),
  initWeightsUpdateGroup: (client) => client.initWeightsUpdateGroup({ ...group, groupName: "actors", backend: "gloo" }),
  destroyWeightsUpdateGroup: async (client) => {
    await client.initWeightsUpdateGroup(group);
    return client.destroyWeightsUpdateGroup();
  },
  updateWeightsFromDistributed: async (client) => {
    await client.pauseScheduler({ mode: "wait" });
    await client.initWeightsUpdateGroup(group);
    await client.updateWeightsFromDistributed({ ...bucket, flushCache: false });
    return client.updateWeightsFromDistributed({ ...bucket, names: ["v"], weightVersion: "2" });
  },
  updateWeightsFromMooncake: async (client) => {
    await client.pauseScheduler({ mode: "wait" });
    return client.updateWeightsFromMooncake({ version: 7, flushCache: true, weightVersion: null });
  },
  updateWeightFromDisk: async (client) => {
    await client.pauseScheduler({ mode: "wait" });
    return client.updateWeightFromDisk({ modelPath: "/checkpoints/7", loadFormat: "auto", weightVersion: "7" });
  },
  rebalanceExperts: (client) => client.rebalanceExperts(),
  releaseMemoryOccupation: (client) => client.releaseMemoryOccupation({ tags: ["weights"] }),
  resumeMemoryOccupation: async (client) => {
    await client.releaseMemoryOccupation();
    return client.resumeMemoryOccupation();
  },
  profile: async (client) => {
    await client.profile({ kind: PROFILE_START, outputDir: "/traces", activities: ["CPU"], withStack: true });
    await client.profile({ kind: PROFILE_STOP });
    return client.profile({ kind: PROFILE_START, numSteps: 2, profileByStage: true });
  },
};

/** What a group of 2 was asked, what it answered and how it was left, in a dialect. */
async function outcome(name: OperationName, dialect: "tagged" | "slim") {
  const asked: unknown[] = [];
  const open = new Map<number | undefined, number>();
  const onEvent = (event: EngineEvent) => {
    if (event.event === "received" && event.message.kind === "control") {
      const { request, callId } = event.message;
      asked.push([event.rank, request]);
      open.set(callId, (open.get(callId) ?? 0) + 1);
    } else if (event.event === "replied") {
      open.set(event.callId, (open.get(event.callId) ?? 0) - 1);
    }
  };
  const { client, engine } = await connectSimulated({ ranks: 2, dialect, memorySaver: true, eplb: true, onEvent });
  const probes = asked.splice(0);
  const replies = (await calls[name]?.(client)) as { engine: number; reply: object }[];
  const states = [engine.state(0), engine.state(1)].map(({ received: _, replied, ...state }) => ({ ...state, replied: replied.get(name) }));
  // each rank has its own ids, and every one was answered
  expect([...open.keys()].every((callId) => (callId === undefined) === (dialect === "tagged"))).toBe(true);
  expect([...open.values()].every((left) => left === 0)).toBe(true);
  return { probes, asked: asked.sort(byRank), replies: replies.map(({ engine: index, reply }) => [index, reply]), states };
}

function byRank(a: unknown, b: unknown): number {
  return (a as [number])[0] - (b as [number])[0];
}

describe("an operation with a method in the second dialect", () => {
  it.each(sayable)("%s is asked, answered and done as in the first one", async (name) => {
    const [slim, tagged] = await Promise.all([outcome(name, "slim"), outcome(name, "tagged")]);
    expect(slim.asked.length).toBeGreaterThan(0);
    expect(slim).toEqual({ ...tagged, probes: [] });
    expect(tagged.probes).toHaveLength(2);
  });

  it("has a case here, and nothing else has", () => {
    expect(Object.keys(calls).sort()).toEqual([...sayable].sort());
  });
});

describe("an operation without one", () => {
  const required: Readonly<Record<string, object>> = {
    UpdateWeightsFromTensorReqInput: { serializedNamedTensors: [], loadFormat: null, flushCache: true },
    SetInternalStateReq: { serverArgs: {} },
  };

  it.each(unsayable.map(({ name, request }) => [name, request]))("%s is unsupported, and nothing is sent", async (name, $tag) => {
    const { client, engine } = await connectSimulated({ ranks: 2, dialect: "slim" });
    const failure = await failureOf(client.control({ $tag, ...required[$tag] } as ControlRequestInit & { $tag: "IsSleepingReqInput" }));
    expect(failure).toMatchObject({ code: "unsupported", operation: name, stage: "queue", engine: 0 });
    expect(failure.message).toContain("the control dialect it speaks has no such operation");
    expect(engine.state().received.size).toBe(0);
  });

  it("is not among the capabilities, and the state cannot be asked", async () => {
    const { client } = await connectSimulated({ ranks: 2, dialect: "slim" });
    expect(client.capabilities()).toMatchObject({
      engines: [{ control: true, dialect: "slim" }, { dialect: "slim" }],
      operations: sayable,
    });
    const { engines, agree } = await client.state({ refresh: true });
    expect(engines).toMatchObject([{ error: { code: "unsupported" } }, { error: { code: "unsupported" } }]);
    expect(agree).toBe(false);
  });
});

describe("failures", () => {
  const slim = (options: Omit<SimulatedEngineOptions, "handshake"> = {}) => connectSimulated({ ranks: 2, dialect: "slim", ...options });

  it("carry the message of each engine", async () => {
    const { client, engine } = await slim({ failOp: [{ op: "UpdateWeightFromDisk", rank: 1, message: "no such checkpoint" }] });
    await client.pauseScheduler({ mode: "wait" });
    const failure = await failureOf(client.updateWeightFromDisk({ modelPath: "/nowhere" }));
    expect(failure).toMatchObject({ code: "operation_failed", engine: 0 });
    expect(failure.replies).toMatchObject([
      { engine: 0, reply: { success: false, message: expect.stringContaining("weight update failed on another rank in the replica") } },
      { engine: 1, reply: { $tag: "UpdateWeightFromDiskReqOutput", success: false, message: "no such checkpoint", numPausedRequests: 0 } },
    ]);
    expect(engine.state(0).weights.version).toBeNull();
  });

  it("of the engine's own checks come back as well", async () => {
    const { client } = await slim();
    const failure = await failureOf(client.releaseMemoryOccupation({}, { guard: false }));
    expect(failure.message).toContain("engine 0: memory saver not enabled (--enable-memory-saver); engine 1: memory saver");
  });

  it("end calls at once when the engine breaks", async () => {
    const { client } = await slim({ faultOp: [{ op: "Profile", rank: 1 }] });
    expect((await failureOf(client.profile({ kind: PROFILE_START }))).code).toBe("engine_dead");
  });
});

describe("replies are told apart by their call", () => {
  it("a late one is swallowed, and the next call gets its own", async () => {
    const { client } = await connectSimulated({ dialect: "slim", lateReply: [{ op: "FlushCache", times: 1, ms: 400 }] });
    expect((await failureOf(client.flushCache({}, { timeoutMs: 50 }))).code).toBe("timeout");
    expect(await client.flushCache()).toMatchObject([{ reply: { $tag: "FlushCacheReqOutput", success: true } }]);
    expect(client.connection.counts).toMatchObject({ lateReplies: 1, unexpectedReplies: 0, lostReplies: 0, malformedMessages: 0 });
  });

  it("one taken for lost does not answer the call after it", async () => {
    const ids: number[] = [];
    const onEvent = (event: EngineEvent) =>
      event.event === "received" &&
      event.message.kind === "control" &&
      event.message.request.$tag === "ProfileReq" &&
      ids.push(event.message.callId ?? -1);
    const { client, engine } = await connectSimulated({ dialect: "slim", dropReply: [{ op: "Profile" }], onEvent });
    expect((await failureOf(client.profile({ kind: PROFILE_START }, { timeoutMs: 50 }))).code).toBe("timeout");
    const stop = client.profile({ kind: PROFILE_STOP }, { guard: false });
    // answers to later requests prove the reply lost, which lets the stop go
    await client.flushCache();
    await client.flushCache();
    while (ids.length < 2) await client.flushCache();
    expect(client.connection.counts.lostReplies).toBe(1);
    const [first, second] = ids as [number, number];
    for (const [callId, message] of [
      [first, "of the start"],
      [second + 100, "of nobody"],
      [second, "of the stop"],
    ] as const) {
      engine.sendRaw(0, encodeControlReplySlim({ callId, success: true, message, engineIndex: 0 }));
    }
    expect(await stop).toMatchObject([{ reply: { success: true, message: "of the stop" } }]);
    expect(client.connection.counts).toMatchObject({ unexpectedReplies: 2, lateReplies: 0 });
  });

  it("of a pause that drains and of what it overtakes", async () => {
    const { client } = await connectSimulated({ ranks: 2, dialect: "slim", lateReply: [{ op: "PauseScheduler", rank: 0, ms: 100 }] });
    const pausing = client.pauseScheduler({ mode: "wait" });
    const others = await Promise.all([client.flushCache(), client.profile({ kind: PROFILE_START })]);
    expect(others.flat().map(({ reply }) => reply.$tag)).toEqual([
      "FlushCacheReqOutput",
      "FlushCacheReqOutput",
      "ProfileReqOutput",
      "ProfileReqOutput",
    ]);
    expect((await pausing).map(({ engine, reply }) => [engine, reply.$tag])).toEqual([
      [0, "PauseSchedulerReqOutput"],
      [1, "PauseSchedulerReqOutput"],
    ]);
  });
});

describe("on the wire", () => {
  const frames: { payload_hex: string }[] = JSON.parse(
    readFileSync(new URL("../vectors/smg-control-frames.json", import.meta.url), "utf8"),
  );
  const control = (payload: Uint8Array) => [Uint8Array.of(2), payload];

  it("the gateway's own frames are answered by call and engine, and what is no operation is refused", async () => {
    const replies: unknown[] = [];
    const frontend = await RawFrontend.bind(2, (engine, arrival) => arrival.kind === "unknown" && replies.push([engine, arrival.value]));
    const dropped: string[] = [];
    const onEvent = (event: EngineEvent) => event.event === "dropped" && dropped.push(event.reason);
    const options = { ranks: 2, dialect: "slim", onEvent } as const;
    const [engine] = await Promise.all([startEngine({ handshake: frontend.address, ...options }), frontend.accept()]);
    onTestFinished(async () => {
      await engine.close();
      frontend.close();
    });
    const both = { names: ["a"], dtypes: ["int8"], shapes: [[1]], flush_cache: true };
    const calls: [engine: number, payload: Uint8Array][] = [
      ...frames.map(({ payload_hex }): [number, Uint8Array] => [1, Buffer.from(payload_hex, "hex")]),
      [1, encode([101, "is_sleeping", []])],
      [0, encode([102, "update_weights_from_mooncake", [{ flush_cache: "yes" }]])],
    ];
    frontend.send(1, control(encode(["IsSleepingReqInput"])));
    for (const [index, [rank, payload]] of calls.entries()) {
      // the gateway's frame 5 is a weight update, which every rank has to hold
      if (index === 5) frontend.send(0, control(encode([103, "update_weights_from_distributed", [both]])));
      frontend.send(rank, control(payload));
      await vi.waitFor(() => expect(replies).toHaveLength(index + (index < 5 ? 1 : 2)), { timeout: 10_000, interval: 2 });
    }
    const byCall = new Map(replies.map((reply) => [(reply as [number, [string, number]])[1][1], reply]));
    const saver = "memory saver not enabled (--enable-memory-saver)";
    const noGroup = "weight update group not initialized";
    expect([...byCall].sort(([a], [b]) => a - b).map(([, reply]) => reply)).toEqual([
      [1, ["ControlReplySlim", 1, true, null, 1]],
      [1, ["ControlReplySlim", 2, true, null, 1]],
      [1, ["ControlReplySlim", 3, true, null, 1]],
      [1, ["ControlReplySlim", 4, true, null, 1]],
      [1, ["ControlReplySlim", 5, false, saver, 1]],
      [1, ["ControlReplySlim", 6, false, noGroup, 1]],
      [1, ["ControlReplySlim", 7, true, null, 1]],
      [1, ["ControlReplySlim", 8, true, "Succeeded", 1]],
      [1, ["ControlReplySlim", 9, true, "Succeeded.", 1]],
      [1, ["ControlReplySlim", 10, true, "Succeeded", 1]],
      [1, ["ControlReplySlim", 101, false, "unknown control method: is_sleeping", 1]],
      [0, ["ControlReplySlim", 102, false, expect.stringMatching(/^Invalid request: .*UpdateWeightsFromMooncakeReqInput/), 0]],
      [0, ["ControlReplySlim", 103, false, noGroup, 0]],
    ]);
    expect(dropped).toHaveLength(1);
  });
});

describe("a group of both dialects", () => {
  it("is asked each engine in its own", async () => {
    const { client, engines } = await connectMixed([{ memorySaver: true }, { dialect: "slim", memorySaver: true }]);
    expect(client.capabilities()).toMatchObject({ engines: [{ dialect: "tagged" }, { dialect: "slim" }], operations: sayable });
    await client.pauseScheduler({ mode: "wait" });
    expect(await client.updateWeightFromDisk({ modelPath: "/m", weightVersion: "3" })).toMatchObject([
      { engine: 0, reply: { success: true, message: "loaded weights from /m" } },
      { engine: 1, reply: { success: true, message: "loaded weights from /m" } },
    ]);
    await client.releaseMemoryOccupation({ tags: ["kv_cache"] });
    for (const engine of engines) expect(engine.state()).toMatchObject({ released: ["kv_cache"], weights: { version: "3", updates: 1 } });
    expect(engines[1]?.state().weights).toEqual(engines[0]?.state().weights);
  });

  it("can be asked for what only the first dialect has where it is spoken", async () => {
    const { client, engines } = await connectMixed([{}, { dialect: "slim" }]);
    expect(await failureOf(client.isSleeping())).toMatchObject({ code: "unsupported", engine: 1 });
    expect(engines[0]?.state().received.get("IsSleeping")).toBeUndefined();
    expect(await client.isSleeping({}, { engines: [0] })).toMatchObject([{ engine: 0, reply: { isSleeping: false } }]);
    const { engines: reports } = await client.state({ refresh: true });
    expect(reports).toMatchObject([{ isPaused: false, isSleeping: false }, { error: { code: "unsupported" } }]);
  });
});

describe("enginewire engine --dialect slim", () => {
  const main = join(import.meta.dirname, "../../src/cli/main.ts");
  const command = (...flags: string[]) => {
    const engine = new LineProcess(process.execPath, ["--import", "tsx", main, "engine", ...flags]);
    onTestFinished(() => engine.stop("SIGKILL"));
    return engine;
  };

  it("speaks it, and its lines name the calls", async () => {
    const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: 1, lingerMs: 0 });
    onTestFinished(() => listener.close());
    const engine = command("--handshake", listener.handshakeAddress, "--dialect", "slim", "--trace");
    const client = createClient(await listener.accept({ timeoutMs: 30_000 }));
    expect(client.capabilities().engines).toMatchObject([{ dialect: "slim" }]);
    await client.pauseScheduler({ mode: "keep" });
    expect(await engine.line(({ event }) => event === "replied")).toMatchObject({ call_id: 1, reply: { tag: "PauseSchedulerReqOutput" } });
    expect(engine.lines.find(({ event }) => event === "received")).toMatchObject({
      message: { type: "control", op: "PauseScheduler", call_id: 1, value: { mode: "keep" } },
    });
  });

  it("is the only other one", async () => {
    const engine = command("--handshake", "tcp://127.0.0.1:1", "--dialect", "fat");
    expect(await engine.exited).toEqual({ code: 2, signal: null });
    expect(engine.errors).toContain("Allowed choices are tagged, slim");
    await expect(startEngine({ handshake: "tcp://127.0.0.1:1", dialect: "fat" as "slim" })).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });
});
