import { describe, expect, test } from "vitest";
import { EngineCrash, EngineFault } from "../../../src/testing/stops.ts";
import { add, control, replies, rows, VirtualEngine } from "./virtual-engine.ts";

const disk = (fields: object = {}) => control("UpdateWeightFromDiskReqInput", fields);
const loaded = [true, "loaded weights from /ckpt", 0];

describe("order within a round", () => {
  test("answered on arrival, then flush, then the weight operation, then what drained", () => {
    const engine = new VirtualEngine({ memorySaver: true });
    const effects = engine.round([
      control("ReleaseMemoryOccupationReqInput"),
      disk(),
      control("FlushCacheReqInput"),
      control("IsSleepingReqInput"),
      control("IsSchedulerPausedReqInput"),
    ]);
    expect(replies(effects)).toEqual([
      [0, "IsSleeping", false],
      [0, "IsSchedulerPaused", true],
      [0, "FlushCache", true],
      [0, "UpdateWeightFromDisk", ...loaded],
      [0, "ReleaseMemoryOccupation", true, ""],
    ]);
  });

  test("a round's outputs go out before its replies", () => {
    const engine = new VirtualEngine();
    engine.round([add("r", 3, 5)]);
    const effects = engine.round([control("IsSleepingReqInput")]);
    expect(effects.map(({ kind }) => kind)).toEqual(["outputs", "reply"]);
  });

  test("a flush comes before the round's forwards: what they end still holds its pages", () => {
    const engine = new VirtualEngine();
    engine.round([add("r", 40, 2)]);
    engine.round();
    const effects = engine.round([control("FlushCacheReqInput")]);
    expect(rows(effects).at(-1)?.finish).toEqual({ type: "length", length: 2 });
    expect(replies(effects)).toEqual([[0, "FlushCache", false]]);
  });

  test("a pause has drained when no forward is under way either", () => {
    const engine = new VirtualEngine();
    engine.round([add("r", 3, 1)]);
    const ending = engine.round([control("PauseSchedulerReqInput", { mode: "wait" })]);
    expect(rows(ending).at(-1)?.finish).toEqual({ type: "length", length: 1 });
    expect(replies(ending)).toEqual([]);
    expect(replies(engine.round())).toEqual([[0, "PauseScheduler", true, ""]]);
  });

  test("one weight operation a round, in order of arrival", () => {
    const engine = new VirtualEngine();
    const queued = [disk(), control("UpdateWeightsFromMooncakeReqInput")];
    expect(replies(engine.round(queued))).toEqual([[0, "UpdateWeightFromDisk", ...loaded]]);
    expect(engine.group.nextRoundMs).toBe(0);
    expect(replies(engine.round())).toEqual([[0, "UpdateWeightsFromMooncake", true, "applied model version 7: stand-in"]]);
    expect(engine.group.nextRoundMs).toBeUndefined();
  });

  test("a resume answers the pause it cancels first", () => {
    const engine = new VirtualEngine();
    engine.round([add("r", 3, 100)]);
    const effects = engine.round([control("PauseSchedulerReqInput", { mode: "wait" }), control("ResumeSchedulerReqInput")]);
    expect(replies(effects)).toEqual([
      [0, "PauseScheduler", false, "resumed before pause drained"],
      [0, "ResumeScheduler", true, ""],
    ]);
  });
});

describe("the gate", () => {
  test("waits for every rank, without a reply", () => {
    const engine = new VirtualEngine({ ranks: 2 });
    expect(replies(engine.settle([disk()]))).toEqual([]);
    expect(replies(engine.settle([], [disk()]))).toEqual([
      [0, "UpdateWeightFromDisk", ...loaded],
      [1, "UpdateWeightFromDisk", ...loaded],
    ]);
  });

  test("different kinds at the heads end the group", () => {
    for (const other of ["InitWeightsUpdateGroupReqInput", "UpdateWeightsFromMooncakeReqInput"] as const) {
      const engine = new VirtualEngine({ ranks: 2 });
      expect(() => engine.round([disk()], [control(other)])).toThrow("different weight operations at their queue heads");
    }
  });

  test("another flush_cache ends the group, unless a flush of its own brought the ranks together", () => {
    expect(() => new VirtualEngine({ ranks: 2 }).round([disk()], [disk({ flushCache: false })])).toThrow(EngineFault);
    const flushing = new VirtualEngine({ ranks: 2 }).round([disk(), control("FlushCacheReqInput")], [disk({ flushCache: false })]);
    expect(replies(flushing)).toHaveLength(3);
  });

  test("a rank that refuses fails the others, whose device did its part all the same", () => {
    const engine = new VirtualEngine({ ranks: 2, failOp: [{ op: "UpdateWeightFromDisk", rank: 1, times: 1, message: "disk is full" }] });
    const before = engine.group.ranks[0]?.device.weights.checksum;
    expect(replies(engine.settle([disk()], [disk()]))).toEqual([
      [0, "UpdateWeightFromDisk", false, "weight update failed on another rank in the replica (loaded weights from /ckpt)", 0],
      [1, "UpdateWeightFromDisk", false, "disk is full", 0],
    ]);
    const [first, second] = engine.group.ranks.map(({ device }) => device.weights);
    expect(first?.checksum).not.toBe(before);
    expect(second?.checksum).toBe(before);
  });

  test("a stale load pairs with the next one of its kind", () => {
    const engine = new VirtualEngine({ ranks: 2 });
    engine.settle([disk({ modelPath: "/stale" })]);
    const effects = engine.settle([disk({ modelPath: "/new" })], [disk({ modelPath: "/new" })]);
    expect(replies(effects).map(([rank, , , message]) => [rank, message])).toEqual([
      [0, "loaded weights from /stale"],
      [1, "loaded weights from /new"],
    ]);
    expect(engine.group.ranks[0]?.controls.queue).toHaveLength(1);
  });

  test("a flush of one rank is answered by that one and decided by all", () => {
    const engine = new VirtualEngine({ ranks: 2 });
    engine.round([], [add("r", 40, 100)]);
    engine.round();
    expect(replies(engine.round([control("FlushCacheReqInput")]))).toEqual([[0, "FlushCache", false]]);
  });
});

test("a rebalance is over once its forwards ran, without another message", () => {
  const engine = new VirtualEngine({ eplb: true });
  const rebalance = control("RebalanceExpertsReqInput");
  const taken = [0, "RebalanceExperts", true, "expert load snapshot taken; the placement commits after 3 forwards"];
  expect(replies(engine.settle([rebalance]))).toEqual([taken]);
  expect(replies(engine.settle([rebalance]))).toEqual([
    [0, "RebalanceExperts", false, "an expert rebalance is already in progress (computing)"],
  ]);
  engine.settle([add("r", 3, 2)]);
  expect(replies(engine.round([rebalance]))).toEqual([taken]);
});

describe("memory", () => {
  const release = (tags: string[]) => control("ReleaseMemoryOccupationReqInput", { tags });

  test("a second release that has to wait stays frozen: no forward may run before the memory is back", () => {
    const engine = new VirtualEngine({ ranks: 2, memorySaver: true });
    engine.settle([release(["kv_cache"])]);
    expect(replies(engine.settle([disk(), release(["weights"])]))).toEqual([]);
    const [first] = engine.group.ranks;
    expect([first?.controls.frozen, first?.controls.drain?.kind, first?.controls.memory.released]).toEqual([true, "release", ["kv_cache"]]);
    expect(replies(engine.settle([], [disk()])).map(([rank, tag]) => [rank, tag])).toEqual([
      [0, "UpdateWeightFromDisk"],
      [0, "ReleaseMemoryOccupation"],
      [1, "UpdateWeightFromDisk"],
    ]);
  });

  test("a wake that leaves something released leaves the scheduler frozen", () => {
    const engine = new VirtualEngine({ memorySaver: true });
    engine.settle([release(["kv_cache", "weights"])]);
    engine.settle([control("ResumeMemoryOccupationReqInput", { tags: ["weights"] })]);
    expect(engine.group.ranks[0]?.controls.frozen).toBe(true);
  });
});

describe("time", () => {
  test("ranks take theirs side by side", () => {
    const engine = new VirtualEngine({ ranks: 2, delayOp: [{ op: "UpdateWeightFromDisk", ms: 300 }] });
    engine.round([disk()], [disk()]);
    expect(engine.now).toBe(300);
  });

  test("a delayed reply holds the loop, and not the replies of other ranks", () => {
    const engine = new VirtualEngine({ ranks: 2, delayOp: [{ op: "IsSleeping", rank: 0, ms: 50 }] });
    const sleeping = control("IsSleepingReqInput");
    expect(replies(engine.round([sleeping], [sleeping])).map(([rank]) => rank)).toEqual([1, 0]);
    expect(engine.now).toBe(50);
  });

  test("a forward takes forwardMs, and a rank without requests runs an idle one", () => {
    const engine = new VirtualEngine({ ranks: 2, forwardMs: 10 });
    engine.round([], [control("ProfileReq", { kind: 1, numSteps: 2 })]);
    engine.settle([add("r", 3, 2)]);
    expect(engine.now).toBe(30);
    const exact = new VirtualEngine();
    exact.round([control("ProfileReq", { kind: 1, numSteps: 2 }), add("r", 3, 10)]);
    expect(exact.group.ranks[0]?.device.profiling).toBe(true);
    exact.round();
    expect(exact.group.ranks[0]?.device.profiling).toBe(false);
    expect(engine.told).toContainEqual({ rank: 1, event: "device", op: "Profile", stopped: "num_steps" });
  });
});

describe("rules", () => {
  test("drop, twice, late and wrong replies", () => {
    const engine = new VirtualEngine({
      dropReply: [{ op: "IsSleeping", times: 1 }],
      duplicateReply: [{ op: "GetInternalState" }],
      lateReply: [{ op: "FlushCache", ms: 40 }],
      wrongReply: [{ op: "IsSchedulerPaused", reply: { $tag: "IsSleepingReqOutput", isSleeping: true } }],
    });
    const all = [
      control("IsSleepingReqInput"),
      control("GetInternalStateReq"),
      control("IsSchedulerPausedReqInput"),
      control("FlushCacheReqInput"),
    ];
    const effects = engine.round(all);
    expect(effects.map(({ kind }) => kind)).toEqual(["dropped", "reply", "reply", "reply", "reply"]);
    expect(replies(effects).map(([, tag]) => tag)).toEqual(["GetInternalState", "GetInternalState", "IsSleeping", "FlushCache"]);
    expect(effects.at(-1)).toMatchObject({ lateMs: 40 });
    expect(engine.now).toBe(0);
    expect(replies(engine.round([control("IsSleepingReqInput")]))).toEqual([[0, "IsSleeping", false]]);
  });

  test("a fault and a crash end the round", () => {
    const faulty = new VirtualEngine({ faultOp: [{ op: "UpdateWeightFromDisk", message: "CUDA error" }] });
    expect(() => faulty.round([disk()])).toThrow(new EngineFault("CUDA error"));
    const crashing = new VirtualEngine({ crashOp: [{ op: "PauseScheduler" }] });
    expect(() => crashing.round([control("PauseSchedulerReqInput")])).toThrow(EngineCrash);
  });

  test("a rule that could never apply is refused", () => {
    expect(() => new VirtualEngine({ failOp: [{ op: "PauseScheduler" }] })).toThrow("the device does not decide its outcome");
    expect(() => new VirtualEngine({ dropReply: [{ op: "Forward" }] })).toThrow("it has no reply");
    expect(() => new VirtualEngine({ delayOp: [{ op: "PauseSchedulerReqInput", ms: 1 }] })).toThrow("no operation has this name");
  });
});

describe("requests", () => {
  test("tokens count up from 1000 and every output is due once", () => {
    const outputs = rows(new VirtualEngine().settle([add("r", 3, 4)]));
    expect(outputs.map(({ outputIds, completionTokens }) => [outputIds, completionTokens])).toEqual([
      [[1000], 1],
      [[1001], 2],
      [[1002], 3],
      [[1003], 4],
    ]);
    expect(outputs.at(-1)?.finish).toEqual({ type: "length", length: 4 });
  });

  test("eight run at a time, the rest wait", () => {
    const engine = new VirtualEngine();
    engine.round(Array.from({ length: 10 }, (_, index) => add(`r${index}`, 3, 50)));
    expect(engine.group.ranks[0]?.scheduler.numWaiting).toBe(2);
    expect(engine.group.ranks[0]?.numRunning).toBe(10);
  });

  test("a long prompt takes a forward for every 256 tokens", () => {
    const engine = new VirtualEngine({ forwardMs: 10 });
    engine.round([add("r", 600, 1)]);
    engine.round();
    expect(rows(engine.round())).toEqual([]);
    expect(rows(engine.round())).toHaveLength(1);
  });

  test("a client's abort is silent, a pause's is not", () => {
    const engine = new VirtualEngine();
    engine.round([add("mine", 3, 100), add("theirs", 3, 100)]);
    engine.round([{ kind: "abort", rids: ["mine"] }]);
    engine.round();
    const finishes = rows(engine.settle([control("PauseSchedulerReqInput")])).filter(({ finish }) => finish !== null);
    expect(finishes).toMatchObject([{ rid: "theirs", finish: { message: "Aborted by pause", err_type: 522 } }]);
  });

  test("an abort that comes first swallows the next request of that id only", () => {
    const engine = new VirtualEngine();
    engine.settle([{ kind: "abort", rids: ["r"] }]);
    expect(rows(engine.settle([add("r", 3, 3)]))).toEqual([]);
    expect(rows(engine.settle([add("r", 3, 3)]))).toHaveLength(3);
  });

  test("an early abort is forgotten after five minutes", () => {
    const engine = new VirtualEngine();
    engine.settle([{ kind: "abort", rids: ["r"] }]);
    engine.now += 300_000;
    engine.settle([]);
    expect(rows(engine.settle([add("r", 3, 3)]))).toHaveLength(3);
  });

  test("what kills the real process crashes here: no prompt, an id that runs, more than the cache holds", () => {
    expect(() => new VirtualEngine().round([add("r", 0, 5)])).toThrow(EngineCrash);
    expect(() => new VirtualEngine().round([add("r", 3, 5), add("r", 3, 5)])).toThrow(EngineCrash);
    expect(() => new VirtualEngine({ kvPages: 8 }).round([add("r", 100, 100)])).toThrow(EngineCrash);
  });
});

describe("the cache", () => {
  test("a repeated prompt's full pages come from it, until a flush", () => {
    const engine = new VirtualEngine();
    const cached = (rid: string, tokens: number) => rows(engine.settle([add(rid, tokens, 2)])).at(-1)?.cachedTokens;
    expect(cached("a", 40)).toBe(0);
    expect(cached("b", 40)).toBe(32);
    expect(cached("c", 32)).toBe(16);
    engine.settle([control("FlushCacheReqInput")]);
    expect(cached("d", 40)).toBe(0);
  });

  test("of a request that ended, the tokens behind the last full page match only as a whole, and without the last one", () => {
    const engine = new VirtualEngine();
    const cached = (rid: string, prompt: readonly number[]) => rows(engine.settle([add(rid, prompt, 1)])).at(-1)?.cachedTokens;
    const prompt = Array.from({ length: 40 }, (_, index) => index + 1);
    const output = Array.from({ length: 20 }, (_, index) => 1000 + index);
    engine.settle([add("r", prompt, 20)]);
    expect(cached("short", [...prompt, ...output.slice(0, 19)])).toBe(48);
    expect(cached("whole", [...prompt, ...output])).toBe(59);
  });

  test("a request shares its full pages while it runs, those of its output too", () => {
    const engine = new VirtualEngine();
    engine.round([add("r", 40, 100)]);
    for (let round = 0; round < 30; round += 1) engine.round();
    const output = Array.from({ length: 20 }, (_, index) => 1000 + index);
    const prompt = [...Array.from({ length: 40 }, (_, index) => index + 1), ...output];
    const effects = engine.settle([add("same", 40, 1), add("longer", prompt, 1)]);
    const cached = (rid: string) => rows(effects).find((row) => row.rid === rid)?.cachedTokens;
    expect([cached("same"), cached("longer")]).toEqual([32, 48]);
  });

  test("the prompt that was not used for longest goes first", () => {
    const engine = new VirtualEngine({ kvPages: 6 });
    const cached = (first: number) => {
      const prompt = Array.from({ length: 33 }, (_, index) => first + index);
      return rows(engine.settle([add(`${first}`, prompt, 1)])).at(-1)?.cachedTokens;
    };
    expect([cached(100), cached(200), cached(100), cached(300), cached(100), cached(200)]).toEqual([0, 0, 32, 0, 32, 0]);
  });

  test("a request holds off flushes once it fills a page: 3 and 15 tokens do not, 3 and 16 do", () => {
    for (const [tokens, flushed] of [
      [15, true],
      [16, false],
    ] as const) {
      const engine = new VirtualEngine();
      let seen = rows(engine.round([add("r", 3, 100)])).length;
      while (seen < tokens - 1) seen += rows(engine.round()).length;
      engine.round([control("PauseSchedulerReqInput", { mode: "keep" })]);
      expect(replies(engine.round([control("FlushCacheReqInput")]))).toEqual([[0, "FlushCache", flushed]]);
    }
  });

  test("copies to the host hold off flushes and the release of the cache until they land", () => {
    const engine = new VirtualEngine({ hostL2: true, cacheAckMs: 400, memorySaver: true });
    engine.settle([add("r", 40, 2)]);
    expect(replies(engine.round([control("FlushCacheReqInput")]))).toEqual([[0, "FlushCache", false]]);
    const started = engine.now;
    expect(replies(engine.settle([control("ReleaseMemoryOccupationReqInput")]))).toEqual([[0, "ReleaseMemoryOccupation", true, ""]]);
    expect(engine.now - started).toBeGreaterThan(390);
    expect(replies(engine.round([control("FlushCacheReqInput")]))).toEqual([[0, "FlushCache", true]]);
  });
});

describe("the weights", () => {
  test("change with each load and are equal where the history is", () => {
    const [one, two, other] = ["/a", "/a", "/b"].map((modelPath) => {
      const engine = new VirtualEngine();
      engine.settle([disk({ modelPath, weightVersion: "7" })]);
      return engine.group.ranks[0]?.device.weights;
    });
    expect(one?.checksum).toBe(two?.checksum);
    expect(one?.checksum).not.toBe(other?.checksum);
    expect(one).toMatchObject({ version: "7", updates: 1 });
  });

  test("a Mooncake load without a version is labelled with its number when it flushes", () => {
    const engine = new VirtualEngine();
    engine.settle([control("UpdateWeightsFromMooncakeReqInput", { flushCache: false })]);
    expect(engine.group.ranks[0]?.device.weights.version).toBeNull();
    engine.settle([control("UpdateWeightsFromMooncakeReqInput")]);
    expect(engine.group.ranks[0]?.device.weights.version).toBe("7");
  });
});
