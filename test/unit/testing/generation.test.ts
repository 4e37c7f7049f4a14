import { decode } from "@msgpack/msgpack";
import { describe, expect, test } from "vitest";
import {
  alternativesOf,
  logprobOf,
  positionOfToken,
  type SimulatedEngineOptions,
  tokenOf,
  weightsOfToken,
} from "../../../src/testing/index.ts";
import type { EngineMessage } from "../../../src/testing/messages.ts";
import { encodeOutputBatch } from "../../../src/testing/output-batch.ts";
import type { OutputRow } from "../../../src/testing/request.ts";
import { add, control, replies, rows, VirtualEngine } from "./virtual-engine.ts";

const load = (modelPath: string, fields: object = {}): EngineMessage =>
  control("UpdateWeightFromDiskReqInput", { modelPath, flushCache: false, ...fields });

/** The tokens of a request among rows. */
const tokens = (outputs: readonly OutputRow[], rid = "r") => outputs.filter((row) => row.rid === rid).flatMap(({ outputIds }) => outputIds);

describe("a token tells the weights and its position", () => {
  test.each([
    [0, 0, 1000],
    [0, 4095, 5095],
    [1, 0, 101_000],
    [19_999, 99_999, 2_000_000_999],
  ])("%i loads, position %i: %i", (updates, position, token) => {
    expect(tokenOf(updates, position)).toBe(token);
    expect([weightsOfToken(token), positionOfToken(token)]).toEqual([updates, position]);
  });

  test("both wrap, so that every token is one the wire can carry", () => {
    expect(tokenOf(20_000, 100_000)).toBe(1000);
    expect(tokenOf(20_001, 100_002)).toBe(tokenOf(1, 2));
  });

  test.each([999, -1, 1000.5, 2_000_001_000, Number.NaN])("%d is no token of a simulated engine", (token) => {
    expect(() => weightsOfToken(token)).toThrow(expect.objectContaining({ code: "invalid_argument", found: String(token) }));
    expect(() => positionOfToken(token)).toThrow("gives no token");
  });
});

describe("weights in tokens", () => {
  test("each load counts, and the engine tells its label", () => {
    const engine = new VirtualEngine();
    const served = [load("/a", { weightVersion: "step-1" }), load("/b"), load("/c", { weightVersion: "step-3" })].map((message) => {
      const before = tokens(rows(engine.settle([add("r", 3, 2)])));
      engine.settle([message]);
      return before.map(weightsOfToken);
    });
    expect(served).toEqual([
      [0, 0],
      [1, 1],
      [2, 2],
    ]);
    const weights = engine.group.ranks[0]?.device.weights;
    expect(weights?.versions).toEqual([null, "step-1", "step-1", "step-3"]);
    expect(weights?.versions[weightsOfToken(tokens(rows(engine.settle([add("r", 3, 1)])))[0] ?? 0)]).toBe("step-3");
  });

  test("a request frozen by keep that goes on after a load shows both, in order; the forward under way was the old weights'", () => {
    const engine = new VirtualEngine();
    const before = [...rows(engine.round([add("r", 3, 6)])), ...rows(engine.round()), ...rows(engine.round())];
    expect(tokens(before)).toEqual([1000, 1001]);
    const frozen = engine.round([control("PauseSchedulerReqInput", { mode: "keep" })]);
    expect(replies(frozen)).toEqual([[0, "PauseScheduler", true, ""]]);
    expect(tokens([...rows(frozen), ...rows(engine.round([load("/a")]))])).toEqual([1002]);
    expect(rows(engine.settle())).toEqual([]);
    expect(tokens(rows(engine.settle([control("ResumeSchedulerReqInput")])))).toEqual([101_003, 101_004, 101_005]);
  });

  test("without a pause too: a token is that of the weights its forward ran with", () => {
    const engine = new VirtualEngine();
    const outputs = [...rows(engine.round([add("r", 3, 4)])), ...rows(engine.round([load("/a")])), ...rows(engine.settle())];
    expect(tokens(outputs)).toEqual([1000, 101_001, 101_002, 101_003]);
  });

  test("a load that fails on one rank leaves each with the weights it has", () => {
    const engine = new VirtualEngine({ ranks: 2, failOp: [{ op: "UpdateWeightFromDisk", rank: 1 }] });
    const answers = replies(engine.settle([load("/a", { weightVersion: "9" })], [load("/a", { weightVersion: "9" })]));
    expect(answers.map(([, , success]) => success)).toEqual([false, false]);
    const served = rows(engine.settle([add("r", 3, 1)], [add("r", 3, 1)]));
    expect(tokens(served)).toEqual([101_000, 1000]);
    expect(engine.group.ranks.map(({ device }) => device.weights.versions)).toEqual([[null, null], [null]]);
  });

  test("switched off, every token is the first weights'", () => {
    const engine = new VirtualEngine({ weightsInTokens: false });
    engine.settle([load("/a")]);
    expect(tokens(rows(engine.settle([add("r", 3, 2)])))).toEqual([1000, 1001]);
  });

  test("what comes from the cache does not change tokens", () => {
    const engine = new VirtualEngine();
    engine.settle([add("r", 40, 3)]);
    engine.settle([load("/a")]);
    const again = rows(engine.settle([add("r", 40, 3)]));
    expect([tokens(again), again[0]?.cachedTokens]).toEqual([[101_000, 101_001, 101_002], 32]);
  });
});

describe("how a request ends", () => {
  const finish = (message: EngineMessage) => rows(new VirtualEngine().settle([message])).at(-1)?.finish;

  test("a stop token ends it, and stands in the output", () => {
    const outputs = rows(new VirtualEngine().settle([add("r", 3, 9, { stopTokenIds: [1003, 7] })]));
    expect(tokens(outputs)).toEqual([1000, 1001, 1002, 1003]);
    expect(outputs.at(-1)?.finish).toEqual({ type: "stop", matched: 1003 });
  });

  test("the budget goes before a stop token", () => {
    expect(finish(add("r", 3, 3, { stopTokenIds: [1002] }))).toEqual({ type: "length", length: 3 });
  });

  test("a stop token among the first min_new_tokens does not end it, the next one may", () => {
    expect(finish(add("r", 3, 9, { stopTokenIds: [1003], minNewTokens: 3 }))).toEqual({ type: "stop", matched: 1003 });
    expect(finish(add("r", 3, 9, { stopTokenIds: [1003], minNewTokens: 4 }))).toEqual({ type: "length", length: 9 });
    expect(finish(add("r", 3, 9, { stopTokenIds: [1003, 1006], minNewTokens: 4 }))).toEqual({ type: "stop", matched: 1006 });
  });

  test("a stop token of other weights does not end it", () => {
    const engine = new VirtualEngine();
    engine.settle([load("/a")]);
    const outputs = rows(engine.settle([add("r", 3, 5, { stopTokenIds: [1001, tokenOf(1, 3)] })]));
    expect(outputs.at(-1)?.finish).toEqual({ type: "stop", matched: 101_003 });
  });
});

describe("logprobs", () => {
  const scored = (prompt: readonly number[], maxNewTokens: number, start: number, top: number) =>
    rows(new VirtualEngine().settle([add("r", prompt, maxNewTokens, { logprobs: { start, top } })])).map(({ logprobs }) => logprobs);

  test("every output token has one; the first row says of the prompt that nothing was scored", () => {
    const [first, second, third] = scored([5, 6, 7], 3, 2, 0);
    expect(first).toEqual({ output: [logprobOf(1000)], outputTop: undefined, input: { values: [null], ids: [7], top: undefined } });
    expect(second).toEqual({ output: [logprobOf(1001)], outputTop: undefined, input: undefined });
    expect(third).toEqual({ output: [logprobOf(1002)], outputTop: undefined, input: undefined });
  });

  test("the prompt is scored from the start on, with a null for the first", () => {
    expect(scored([5, 6, 7, 8], 1, 1, 0)[0]?.input).toEqual({ values: [null, -0.008, -0.009], ids: [6, 7, 8], top: undefined });
  });

  test("alternatives: the token itself, then less likely ones", () => {
    expect(alternativesOf(1000, 3)).toEqual({ ids: [1000, 1001, 1002], values: [-0.001, -1.001, -2.001] });
    expect(alternativesOf(2 ** 31 - 1, 2).ids).toEqual([2 ** 31 - 1, 0]);
    expect(scored([5, 6, 7], 1, 1, 2)).toEqual([
      {
        output: [-0.001],
        outputTop: { values: [[-0.001, -1.001]], ids: [[1000, 1001]] },
        input: { values: [null, -0.008], ids: [6, 7], top: { values: [null, [-0.008, -1.008]], ids: [null, [7, 8]] } },
      },
    ]);
  });

  test("alternatives without a budget end at the first decode step, as in the engine", () => {
    const outputs = rows(new VirtualEngine().settle([add("r", [5, 6, 7], 90, { logprobs: { start: 2, top: 1 } })]));
    expect(tokens(outputs)).toEqual([1000, 1001]);
    expect(outputs.at(-1)).toMatchObject({
      finish: { type: "abort", message: "top-k logprobs are not computed for this step (decode steps return none)" },
      logprobs: { output: [logprobOf(1001)], outputTop: { ids: [[1000]] } },
    });
  });

  test("rows that gather several tokens have the logprobs of all of them", () => {
    const outputs = rows(new VirtualEngine().settle([add("r", 3, 7, { streamInterval: 3, logprobs: { start: 2, top: 0 } })]));
    expect(outputs.map(({ outputIds }) => outputIds.length)).toEqual([1, 3, 3]);
    for (const { outputIds, logprobs } of outputs) expect(logprobs?.output).toEqual(outputIds.map(logprobOf));
  });

  test("positions that are scored do not come from the cache", () => {
    const cached = (start: number) => {
      const engine = new VirtualEngine();
      engine.settle([add("a", 40, 1)]);
      return rows(engine.settle([add("b", 40, 1, { logprobs: { start, top: 0 } })]))[0]?.cachedTokens;
    };
    expect([cached(39), cached(31), cached(32), cached(0)]).toEqual([32, 16, 32, 0]);
  });

  test("a request aborted before it ran has none", () => {
    const engine = new VirtualEngine();
    engine.settle([control("PauseSchedulerReqInput", { mode: "keep" }), add("r", 3, 5, { logprobs: { start: 0, top: 1 } })]);
    engine.settle([control("PauseSchedulerReqInput", { mode: "abort" })]);
    const [row] = rows(engine.settle([control("ResumeSchedulerReqInput")]));
    expect(row).toMatchObject({ outputIds: [], logprobs: { output: [], outputTop: { ids: [], values: [] }, input: undefined } });
  });
});

describe("many requests", () => {
  test("as many run at a time as the batch holds, each with a token a forward", () => {
    const engine = new VirtualEngine({ maxBatch: 512, kvPages: 4096, maxBatchTokens: 4096 });
    engine.round(Array.from({ length: 600 }, (_, index) => add(`r${index}`, 3, 20)));
    const [rank] = engine.group.ranks;
    expect([rank?.scheduler.numWaiting, rank?.scheduler.activePages]).toEqual([88, 1024]);
    expect(rows(engine.round())).toHaveLength(512);
    const rest = rows(engine.settle());
    expect(rest.filter(({ finish }) => finish !== null)).toHaveLength(600);
    expect([rank?.scheduler.empty, rank?.scheduler.activePages, rank?.numRunning]).toEqual([true, 0, 0]);
  });

  test("requests wait while the pages of those that run leave no room, and start in order", () => {
    const engine = new VirtualEngine({ kvPages: 5 });
    const outputs = rows(engine.settle([add("a", 3, 40), add("b", 3, 29), add("c", 3, 5)]));
    const firsts = outputs.filter(({ completionTokens }) => completionTokens === 1).map(({ rid }) => rid);
    expect(firsts).toEqual(["a", "b", "c"]);
    expect(outputs.findIndex(({ rid }) => rid === "c")).toBeGreaterThan(outputs.findIndex(({ rid, finish }) => rid === "b" && finish));
  });
});

describe("output batches", () => {
  const batches = (options: Omit<SimulatedEngineOptions, "handshake">, ...messages: EngineMessage[]) => {
    const engine = new VirtualEngine(options);
    const outputs = engine.settle(messages).flatMap((effect) => (effect.kind === "outputs" ? [effect] : []));
    return { engine, outputs, columns: outputs.map((output) => decode(encodeOutputBatch(output, 3, 22)) as unknown[][]) };
  };

  test("have every column, the load and where they come from", () => {
    const { columns } = batches({}, add("r", 20, 1));
    const [[tag, ...all] = []] = columns;
    expect(tag).toBe("BatchTokenIDOutSlim");
    // a forward is still under way, and holds its two pages
    expect(all.slice(0, 13)).toEqual([["r"], [[1000]], ["length"], [20], [1], [0], [[]], [[]], 3, 0, 0, 2, 512]);
    expect(all.slice(13)).toEqual([[{ type: "length", length: 1 }], [], [], [], [], [], [], [], []]);
  });

  test("have columns of logprobs for every row where one row has something, and none at all else", () => {
    const wanted = { logprobs: { start: 1, top: 1 } };
    const { columns } = batches({}, add("plain", [1, 2, 3], 2), add("r", [1, 2, 3], 1, wanted));
    const [first, second] = columns;
    expect(first?.slice(7, 9)).toEqual([
      [[], [-0.001]],
      [[], [1000]],
    ]);
    expect(first?.slice(17)).toEqual([
      [[], [null, -0.004]],
      [[], [2, 3]],
      [[], [null, [-0.004]]],
      [[], [null, [3]]],
      [[], [[-0.001]]],
      [[], [[1000]]],
    ]);
    expect(second?.slice(17)).toEqual([[], [], [], [], [], []]);
    const [without] = batches({}, add("r", [1, 2, 3], 1, { logprobs: { start: 2, top: 0 } })).columns;
    expect(without?.slice(17)).toEqual([[[null]], [[3]], [], [], [], []]);
  });

  test("write a whole logprob as a float", () => {
    const { outputs } = batches({}, add("r", [1, 999], 1, { logprobs: { start: 0, top: 0 } }));
    const [batch = expect.unreachable()] = outputs;
    expect(Buffer.from(encodeOutputBatch(batch, 0, 22)).toString("hex")).toContain("92c0cbbff0000000000000");
  });

  test.each([8, 9, 13] as const)("stop after %i columns as an older engine's", (count) => {
    const { outputs, columns } = batches({}, add("r", 20, 1));
    const [batch = expect.unreachable()] = outputs;
    expect(decode(encodeOutputBatch(batch, 3, count))).toEqual(columns[0]?.slice(0, count + 1));
  });

  test("unequal columns: a batch lacks a prompt length, and those after it do not", () => {
    const { engine, columns } = batches({ badBatch: [{ fault: "unequal-columns", times: 1 }] }, add("r", 3, 3), add("s", 3, 3));
    expect(columns.map((batch) => [batch[1]?.length, batch[4]?.length, batch[5]?.length])).toEqual([
      [2, 1, 2],
      [2, 2, 2],
      [2, 2, 2],
    ]);
    expect(engine.told).toContainEqual({ rank: 0, event: "bad_batch", fault: "unequal-columns" });
  });

  test("an unknown request's row stands behind the others", () => {
    const { columns } = batches({ badBatch: [{ fault: "unknown-rid", times: 1 }] }, add("r", 3, 2));
    expect(columns.map((batch) => batch[1])).toEqual([["r", "nobody-asked"], ["r"]]);
  });

  test("after finish: the rows that ended come again, and batches that end none do not count", () => {
    const { columns } = batches({ badBatch: [{ fault: "after-finish", times: 1 }] }, add("r", 3, 2), add("s", 3, 3));
    expect(columns.map((batch) => [batch[1], batch[3]])).toEqual([
      [
        ["r", "s"],
        ["", ""],
      ],
      [
        ["r", "s"],
        ["length", ""],
      ],
      [["r"], ["length"]],
      [["s"], ["length"]],
    ]);
  });

  test("a fault is one rank's where it says so, and one there is not is refused", () => {
    const { outputs } = batches({ ranks: 2, badBatch: [{ fault: "unknown-rid", rank: 1 }] }, add("r", 3, 1));
    expect(outputs.map(({ rows }) => rows.length)).toEqual([1]);
    const unknown = { badBatch: [{ fault: "sideways" as never }] };
    expect(() => new VirtualEngine(unknown)).toThrow("a batch fault is one of unequal-columns, unknown-rid, after-finish");
    expect(() => new VirtualEngine({ outputColumns: 10 as never })).toThrow("outputColumns is one of 8, 9, 13, 22, not 10");
  });
});
