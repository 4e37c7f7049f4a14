import { describe, expect, test } from "vitest";
import { logprobOf, positionOfToken, tokenOf, weightsOfToken } from "../../src/testing/index.ts";
import { Generating } from "./generating.ts";

const upTo = (count: number, updates = 0) => Array.from({ length: count }, (_, position) => tokenOf(updates, position));
const prompt = (length: number) => Array.from({ length }, (_, index) => index + 1);

describe("pauses, with requests that run", () => {
  test("wait drains them to their end and only then answers; what comes meanwhile starts after the resume", async () => {
    const engine = await Generating.start();
    const [a, b] = [engine.generate("a", prompt(3), 30), engine.generate("b", prompt(3), 60)];
    await engine.until(() => a.tokens.length > 2 && b.tokens.length > 2);
    const paused = engine.call("PauseScheduler", { mode: "wait" });
    const held = engine.generate("held", prompt(3), 5);
    expect(await paused).toMatchObject({ success: true });
    expect(engine.log).toEqual(["finish a", "finish b", "reply PauseScheduler true"]);
    expect([a.tokens, b.tokens, held.tokens]).toEqual([upTo(30), upTo(60), []]);
    expect(engine.engine.state()).toMatchObject({ paused: true, frozen: false, running: 1 });
    await engine.call("ResumeScheduler");
    expect(await engine.finished(held)).toMatchObject({ tokens: upTo(5), finish: { type: "length", length: 5 } });
  });

  test("abort ends them, each with a last output that says so, and then answers", async () => {
    const engine = await Generating.start({ maxBatch: 1 });
    const [runs, waits] = [engine.generate("runs", prompt(3), 4000), engine.generate("waits", prompt(3), 4000)];
    await engine.until(() => runs.tokens.length > 2);
    expect(await engine.call("PauseScheduler", { mode: "abort" })).toMatchObject({ success: true });
    expect(engine.log.at(-1)).toBe("reply PauseScheduler true");
    for (const stream of [runs, waits]) {
      expect(stream.finish).toEqual({ type: "abort", message: "Aborted by pause", err_type: 522 });
      expect(stream.tokens).toEqual(upTo(stream.tokens.length));
      expect(stream.tokens.length).toBeLessThan(4000);
    }
    expect(engine.engine.state()).toMatchObject({ running: 0, waiting: 0 });
  });

  test("keep freezes them where they are: not a token until the resume, then all that are left", async () => {
    const engine = await Generating.start();
    const stream = engine.generate("r", prompt(3), 50);
    await engine.until(() => stream.tokens.length > 2);
    await engine.call("PauseScheduler", { mode: "keep" });
    // the forward that was under way may still bring its token, in the next round at the latest
    await engine.call("IsSchedulerPaused");
    const frozenAt = stream.tokens.length;
    expect(frozenAt).toBeLessThan(50);
    // each query is a round of the engine's loop
    for (let round = 0; round < 20; round += 1) await engine.call("IsSleeping");
    expect(stream.tokens).toHaveLength(frozenAt);
    expect(engine.engine.state()).toMatchObject({ frozen: true, running: 1 });
    await engine.call("ResumeScheduler");
    expect((await engine.finished(stream)).tokens).toEqual(upTo(50));
  });
});

test("a release drains what runs and clears the cache", async () => {
  const engine = await Generating.start({ memorySaver: true });
  await engine.finished(engine.generate("first", prompt(40), 2));
  expect((await engine.finished(engine.generate("again", prompt(40), 2))).cachedTokens).toBe(32);
  const running = engine.generate("running", prompt(3), 40);
  await engine.until(() => running.tokens.length > 2);
  expect(await engine.call("ReleaseMemoryOccupation")).toMatchObject({ success: true });
  expect(running.tokens).toEqual(upTo(40));
  expect(engine.engine.state()).toMatchObject({ released: ["kv_cache", "weights"], running: 0 });
  await engine.call("ResumeMemoryOccupation");
  expect((await engine.finished(engine.generate("after", prompt(40), 2))).cachedTokens).toBe(0);
});

describe("weights in tokens", () => {
  test("requests before, during and after loads tell which weights served them, and under which label", async () => {
    const engine = await Generating.start();
    const load = (version: string) =>
      engine.call("UpdateWeightFromDisk", { model_path: `/${version}`, flush_cache: false, weight_version: version });
    const frozen = engine.generate("frozen", prompt(3), 40);
    await engine.until(() => frozen.tokens.length > 2);
    await engine.call("PauseScheduler", { mode: "keep" });
    expect(await load("step-1")).toMatchObject({ success: true });
    await engine.call("ResumeScheduler");
    await engine.finished(frozen);
    await engine.call("PauseScheduler", { mode: "wait" });
    await load("step-2");
    await engine.call("ResumeScheduler");
    const after = await engine.finished(engine.generate("after", prompt(3), 3));

    expect(frozen.tokens.map(positionOfToken)).toEqual(Array.from({ length: 40 }, (_, position) => position));
    const served = frozen.tokens.map(weightsOfToken);
    expect(served).toEqual([...served].sort());
    expect(new Set(served)).toEqual(new Set([0, 1]));
    expect(after.tokens).toEqual(upTo(3, 2));
    const { weights } = engine.engine.state();
    expect(weights).toMatchObject({ updates: 2, version: "step-2" });
    expect([...served, ...after.tokens.map(weightsOfToken)].map((updates) => weights.versions[updates])).toEqual([
      ...served.map((updates) => [null, "step-1"][updates]),
      ...["step-2", "step-2", "step-2"],
    ]);
  });

  test("switched off, no load shows", async () => {
    const engine = await Generating.start({ weightsInTokens: false });
    await engine.call("UpdateWeightFromDisk", { model_path: "/a" });
    expect((await engine.finished(engine.generate("r", prompt(3), 3))).tokens).toEqual(upTo(3));
  });
});

test("budgets, stop tokens, min_new_tokens, ignore_eos", async () => {
  const engine = await Generating.start();
  const of = (rid: string, extras: Parameters<Generating["generate"]>[3]) => engine.finished(engine.generate(rid, prompt(3), 9, extras));
  const stop = [tokenOf(0, 4), 7];
  const [budget, stopped, least, ignoring] = await Promise.all([
    of("budget", {}),
    of("stopped", { stop }),
    of("least", { stop, minNewTokens: 6 }),
    of("ignoring", { stop, ignoreEos: true }),
  ]);
  expect(budget).toMatchObject({ tokens: upTo(9), finish: { type: "length", length: 9 } });
  expect(stopped).toMatchObject({ tokens: upTo(5), finish: { type: "stop", matched: 1004 } });
  expect(least).toMatchObject({ tokens: upTo(9), finish: { type: "length" } });
  expect(ignoring).toMatchObject({ tokens: upTo(9), finish: { type: "length" } });
});

describe("logprobs", () => {
  test("are refused by default, in the engine's words", async () => {
    const engine = await Generating.start();
    expect((await engine.finished(engine.generate("r", prompt(3), 3, { returnLogprob: true }))).finish).toMatchObject({
      type: "abort",
      message: "Invalid request: logprobs were requested but the server was started without --enable-output-logprobs",
      status_code: 400,
    });
  });

  test("one for each token, the same every time, and none for a request that asked for none", async () => {
    const engine = await Generating.start({ outputLogprobs: true });
    const extras = { returnLogprob: true, streamInterval: 4 };
    const streams = [engine.generate("a", prompt(3), 9, extras), engine.generate("b", prompt(3), 9, extras)];
    const plain = engine.generate("plain", prompt(3), 9);
    for (const stream of [...streams, plain]) await engine.finished(stream);
    for (const { tokens, logprobs } of streams) expect(logprobs).toEqual(tokens.map(logprobOf));
    expect(plain.logprobs).toEqual([]);
  });

  test("of the prompt, with alternatives, once", async () => {
    const engine = await Generating.start({ outputLogprobs: true });
    const wanted = { returnLogprob: true, logprobStartLen: 1, topLogprobsNum: 2 };
    const { rows, finish } = await engine.finished(engine.generate("r", [10, 20, 30], 1, wanted));
    expect([rows.length, finish]).toEqual([1, { type: "length", length: 1 }]);
    expect(rows[0]?.columns.slice(16)).toEqual([
      [[null, -0.031]],
      [[20, 30]],
      [[null, [-0.031, -1.031]]],
      [[null, [30, 31]]],
      [[[-0.001, -1.001]]],
      [[[1000, 1001]]],
    ]);
  });
});

describe("output batches gone wrong", () => {
  test("unequal columns, an unknown request, a row after the last", async () => {
    const engine = await Generating.start();
    engine.engine.addRules({
      badBatch: [
        { fault: "unequal-columns", times: 1 },
        { fault: "unknown-rid", times: 1 },
        { fault: "after-finish", times: 1 },
      ],
    });
    const stream = engine.generate("r", prompt(3), 2);
    await engine.until(() => stream.rows.length === 3);
    const [first, , last] = stream.rows;
    expect(first?.columns.slice(0, 5)).toEqual([["r", "nobody-asked"], [[1000], [1000]], ["", ""], [3], [1, 1]]);
    expect(last?.columns.slice(0, 3)).toEqual([["r"], [[1001]], ["length"]]);
    expect(engine.log).toEqual(["finish r", "finish r"]);
  });

  test.each([8, 9, 13] as const)("of %i columns", async (outputColumns) => {
    const engine = await Generating.start({ outputColumns });
    const { rows } = await engine.finished(engine.generate("r", prompt(3), 1));
    expect(rows[0]?.columns).toHaveLength(outputColumns);
  });

  test("a kill with streams open says nothing more", async () => {
    const engine = await Generating.start();
    const stream = engine.generate("r", prompt(3), 4000);
    await engine.until(() => stream.tokens.length > 2);
    await engine.engine.kill();
    expect(await engine.engine.closed).toEqual({ reason: "killed" });
    await engine.gone();
    expect([stream.finish, engine.log]).toEqual([null, []]);
  });

  test("nor does an engine that crashes in a forward", async () => {
    const engine = await Generating.start();
    const stream = engine.generate("r", prompt(3), 4000);
    await engine.until(() => stream.tokens.length > 2);
    engine.engine.addRules({ crashOp: [{ op: "Forward" }] });
    expect(await engine.engine.closed).toMatchObject({ reason: "crashed" });
    await engine.gone();
    expect([stream.finish, engine.log]).toEqual([null, []]);
  });
});
