// Streams against engines that do exactly what a test tells them.
import { describe, expect, it, vi } from "vitest";
import type { Client, ConnectionEvent, GenerateOptions, GenerateRequest, OutputStream } from "../../src/index.ts";
import type { BindOptions } from "../../src/node/index.ts";
import { encodeAny } from "../../src/wire/index.ts";
import { read } from "../behaviours/outcomes.ts";
import { batchOf } from "../behaviours/output.ts";
import { collectGarbage } from "./garbage-collector.ts";
import type { ScriptedEngine } from "./scripted-engine.ts";
import { connectScripted, failureOf } from "./scripted-group.ts";
import { receiveAbort, receiveAdd } from "./scripted-output.ts";

const request: GenerateRequest = { inputIds: [1, 2, 3], samplingParams: { maxNewTokens: 8 } };

async function connect(count = 1, bindOptions: Partial<BindOptions> = {}) {
  const { client, engines } = await connectScripted(count, { guard: false }, bindOptions);
  return { client, engines, engine: engines[0] as ScriptedEngine, generate: generateOn(client) };
}

function generateOn({ connection }: Client) {
  return (fields: Partial<GenerateRequest> = {}, options: GenerateOptions = {}): OutputStream =>
    connection.generate({ ...request, ...fields }, options);
}

async function expectSilence(engine: ScriptedEngine): Promise<void> {
  expect(await engine.receivesWithin(50)).toBe(false);
}

describe("a stream", () => {
  it("gives the chunks of its request, in order, and ends behind the one with a reason", async () => {
    const { engine, generate } = await connect();
    const stream = generate({ rid: "a", stream: false });
    expect(await receiveAdd(engine)).toMatchObject({ rid: "a", inputIds: [1, 2, 3], stream: false });
    await engine.send(batchOf([{ rid: "a", ids: [5] }]));
    await engine.send(batchOf([{ rid: "a", ids: [6, 7] }]));
    const details = { finishReasonDetails: [{ type: "stop", matched: 7 }] };
    await engine.send(batchOf([{ rid: "a", ids: [], finish: "stop" }], details));
    const { ids, last } = await read(stream);
    expect(ids).toEqual([5, 6, 7]);
    expect(last).toEqual({
      outputIds: [],
      finishReason: "stop",
      finishDetails: { type: "stop", matched: 7 },
      promptTokens: 3,
      completionTokens: 0,
      cachedTokens: 0,
      outputTokenLogprobs: null,
      outputTopLogprobs: null,
      inputTokenLogprobs: null,
      inputTopLogprobs: null,
      specVerifyCt: null,
      acceptDraftTokens: null,
    });
    expect(stream).toMatchObject({ rid: "a", engine: 0 });
    expect(await stream.next()).toEqual({ value: undefined, done: true });
    await stream.return();
    await expectSilence(engine);
  });

  it("gives what engines say beyond tokens", async () => {
    const { engine, generate } = await connect();
    const stream = generate({ rid: "a" });
    expect((await receiveAdd(engine)).stream).toBe(true);
    const columns = {
      outputTokenLogprobsVal: [[-0.5, -0.25]],
      outputTokenLogprobsIdx: [[5, 6]],
      specVerifyCt: [4],
      acceptDraftTokens: [0.75],
      inputTokenLogprobsVal: [[null, -1, -2]],
      inputTokenLogprobsIdx: [[1, 2, 3]],
      inputTopLogprobsVal: [[null, [-1]]],
      inputTopLogprobsIdx: [[null, [2]]],
      outputTopLogprobsVal: [
        [
          [-0.5, -3],
          [-0.25, -4],
        ],
      ],
      outputTopLogprobsIdx: [
        [
          [5, 9],
          [6, 9],
        ],
      ],
    };
    await engine.send(batchOf([{ rid: "a", ids: [5, 6], finish: "length" }], columns));
    expect((await read(stream)).last).toMatchObject({
      finishReason: "length",
      finishDetails: null,
      outputTokenLogprobs: { tokenIds: [5, 6], logprobs: [-0.5, -0.25] },
      outputTopLogprobs: { tokenIds: [[5, 9], [6, 9]], logprobs: [[-0.5, -3], [-0.25, -4]] }, // biome-ignore format: two columns
      inputTokenLogprobs: { tokenIds: [1, 2, 3], logprobs: [null, -1, -2] },
      inputTopLogprobs: { tokenIds: [null, [2]], logprobs: [null, [-1]] },
      specVerifyCt: 4,
      acceptDraftTokens: 0.75,
    });
  });

  it("belongs to one engine: the same id from another one is none of its output", async () => {
    const { client, engines, generate } = await connect(2);
    const stream = generate({ rid: "a" }, { engine: 1 });
    await receiveAdd(engines[1] as ScriptedEngine);
    await engines[0]?.send(batchOf([{ rid: "a", ids: [666], finish: "stop" }]));
    await vi.waitFor(() => expect(client.connection.counts.unexpectedOutputs).toBe(1), 5000);
    await engines[1]?.send(batchOf([{ rid: "a", ids: [5], finish: "stop" }]));
    expect((await read(stream)).ids).toEqual([5]);
  });

  it("is sent when it is made, with an id of its own", async () => {
    const { engine, generate } = await connect();
    const streams = [generate(), generate()];
    const [first, second] = [await receiveAdd(engine), await receiveAdd(engine)];
    expect([first.rid, second.rid]).toEqual(streams.map(({ rid }) => rid));
    expect(first.rid).not.toBe(second.rid);
  });
});

describe("a reader that leaves", () => {
  const ways: readonly [how: string, leave: (stream: OutputStream, controller: AbortController) => Promise<unknown>][] = [
    [
      "breaks out of its loop",
      async (stream) => {
        for await (const _ of stream) break;
      },
    ],
    ["returns", (stream) => stream.return()],
    ["disposes", async (stream) => stream[Symbol.asyncDispose]()],
    ["throws", async (stream) => {
      const failing = async () => {
        for await (const _ of stream) throw new Error("mine");
      };
      await expect(failing()).rejects.toThrow("mine");
    }], // biome-ignore format: a pair
  ];
  it.each(ways)("%s: its request is aborted, once", async (_, leave) => {
    const { client, engine, generate } = await connect();
    const controller = new AbortController();
    const stream = generate({ rid: "a" }, { signal: controller.signal });
    await receiveAdd(engine);
    await engine.send(batchOf([{ rid: "a", ids: [5] }]));
    await leave(stream, controller);
    expect(await receiveAbort(engine)).toEqual(["a"]);
    controller.abort();
    await stream.return();
    expect(await stream.next()).toEqual({ value: undefined, done: true });
    await expectSilence(engine);
    expect(client.connection.engines[0]?.inFlight).toBe(0);
  });

  it("aborts its signal: the stream ends with aborted, at once", async () => {
    const { engine, generate } = await connect();
    const controller = new AbortController();
    const stream = generate({ rid: "a" }, { signal: controller.signal });
    await receiveAdd(engine);
    const failure = failureOf(stream.next());
    controller.abort(new Error("enough"));
    expect(await failure).toMatchObject({ code: "aborted", engine: 0, cause: new Error("enough") });
    expect(await receiveAbort(engine)).toEqual(["a"]);
    expect(await stream.next()).toEqual({ value: undefined, done: true });
    await expectSilence(engine);
  });

  it("had aborted before: nothing is sent", async () => {
    const { engine, generate } = await connect();
    expect(await failureOf(generate({}, { signal: AbortSignal.abort("no") }).next())).toMatchObject({ code: "aborted", cause: "no" });
    await expectSilence(engine);
  });

  it("lets the stream go without a word: its request is aborted when the stream is collected", async () => {
    const { client, engine, generate } = await connect();
    (() => void generate({ rid: "a" }))();
    await receiveAdd(engine);
    await vi.waitFor(() => {
      collectGarbage();
      expect(client.connection.engines[0]?.inFlight).toBe(0);
    }, 10_000);
    expect(await receiveAbort(engine)).toEqual(["a"]);
  });

  it("is not taken for one while somebody waits for a chunk", async () => {
    const { engine, generate } = await connect();
    const next = (() => generate({ rid: "a" }).next())();
    await receiveAdd(engine);
    collectGarbage();
    await expectSilence(engine);
    await engine.send(batchOf([{ rid: "a", ids: [5], finish: "stop" }]));
    expect((await next).value?.outputIds).toEqual([5]);
  });

  it("is one of many with one signal: one message aborts them all, and no listener is left", async () => {
    const { engine, generate } = await connect();
    const controller = new AbortController();
    const add = vi.spyOn(controller.signal, "addEventListener");
    const remove = vi.spyOn(controller.signal, "removeEventListener");
    const streams = Array.from({ length: 100 }, (_, index) => generate({ rid: `r${index}` }, { signal: controller.signal }));
    for (let index = 0; index < 100; index++) await receiveAdd(engine);
    controller.abort();
    expect(await receiveAbort(engine)).toEqual(streams.map(({ rid }) => rid));
    for (const { error } of await Promise.all(streams.map(read))) expect(error?.code).toBe("aborted");
    expect(add.mock.calls.length).toBe(remove.mock.calls.length);
    await expectSilence(engine);
  });

  it("crosses the finish: the last output is no surprise, and the id is not used again", async () => {
    const { client, engine, generate } = await connect();
    const stream = generate({ rid: "a" });
    await receiveAdd(engine);
    await stream.return();
    await receiveAbort(engine);
    await engine.send(batchOf([{ rid: "a", ids: [5], finish: "stop" }]));
    await engine.send(batchOf([{ rid: "b", ids: [5], finish: "stop" }]));
    await vi.waitFor(() => expect(client.connection.counts.unexpectedOutputs).toBe(1), 5000);
    // the engine keeps the abort that came too late and would swallow the next request of that id
    const failure = await failureOf(generate({ rid: "a" }).next());
    expect(failure).toMatchObject({ code: "duplicate_request_id", path: "rid" });
    expect(failure.message).toContain("was aborted within the last minutes");
    await expectSilence(engine);
  });
});

describe("a request that must not leave", () => {
  const huge = 2 ** 31;
  const bad: readonly [what: string, fields: object, options: object, error: object][] = [
    ["an empty prompt", { inputIds: [] }, {}, { code: "refused", path: "TokenizedGenerateReqInput.inputIds" }],
    ["no prompt", { inputIds: null }, {}, { code: "refused", path: "TokenizedGenerateReqInput.inputIds" }],
    ["no sampling parameters", { samplingParams: undefined }, {}, { code: "missing_field" }],
    ["a misspelt field", { inputIDs: [1] }, {}, { code: "unknown_field" }],
    ["a token id out of range", { inputIds: [huge] }, {}, { code: "invalid_value", path: "TokenizedGenerateReqInput.input_ids[0]" }],
    ["an empty id", { rid: "" }, {}, { code: "invalid_argument", path: "rid" }],
    ["several ids", { rid: ["a"] }, {}, { code: "invalid_argument", path: "rid" }],
    ["an engine that is not there", {}, { engine: 7 }, { code: "invalid_argument", path: "engine" }],
    ["a rank that is not there", { dataParallelRank: 7 }, {}, { code: "invalid_argument", path: "dataParallelRank" }],
    ["a misspelt option", {}, { timeout: 5 }, { code: "invalid_argument", path: "timeout" }],
    ["no buffer", {}, { bufferedTokens: 0 }, { code: "invalid_argument", path: "bufferedTokens" }],
    ["no signal", {}, { signal: {} }, { code: "invalid_argument", path: "signal" }],
  ];
  it.each(bad)("with %s is refused, and nothing is sent", async (_, fields, options, error) => {
    const { client, engine, generate } = await connect();
    const stream = generate(fields, options);
    expect(await failureOf(stream.next())).toMatchObject(error);
    expect(await stream.next()).toEqual({ value: undefined, done: true });
    await stream.return();
    expect(client.connection.engines[0]?.inFlight).toBe(0);
    await expectSilence(engine);
  });

  it.each([null, 5, "text"])("is %s", async (value) => {
    const { client } = await connect();
    expect(await failureOf(client.connection.generate(value as never).next())).toMatchObject({ code: "invalid_argument" });
    expect(await failureOf(client.connection.generate(request, value as never).next())).toMatchObject({ code: "invalid_argument" });
  });

  it("has the id of one in flight, or of one that ended a moment ago", async () => {
    const { engine, generate } = await connect();
    const stream = generate({ rid: "a" });
    await receiveAdd(engine);
    const inFlight = await failureOf(generate({ rid: "a" }).next());
    expect(inFlight).toMatchObject({ code: "duplicate_request_id", path: "rid" });
    expect(inFlight.message).toContain('rid "a" is in flight');
    await engine.send(batchOf([{ rid: "a", ids: [5], finish: "stop" }]));
    expect((await read(stream)).ids).toEqual([5]);
    expect((await failureOf(generate({ rid: "a" }).next())).message).toContain("ended a moment ago");
    await expectSilence(engine);
  });
});

describe("a reader that stalls", () => {
  it("fails its own stream only, keeps what it had, and its request is aborted", async () => {
    const { engine, generate } = await connect();
    const [slow, quick] = [generate({ rid: "slow" }, { bufferedTokens: 10 }), generate({ rid: "quick" }, { bufferedTokens: 10 })];
    await receiveAdd(engine);
    await receiveAdd(engine);
    const quickly = read(quick);
    for (let step = 0; step < 12; step++) {
      await engine.send(batchOf(["slow", "quick"].map((rid) => ({ rid, ids: [step], ...(step === 11 && { finish: "length" }) }))));
    }
    const { ids, error } = await quickly;
    expect(ids).toEqual(Array.from({ length: 12 }, (_, step) => step));
    expect(error).toBeUndefined();
    expect(await receiveAbort(engine)).toEqual(["slow"]);
    const slowly = await read(slow);
    expect(slowly.ids).toEqual(Array.from({ length: 10 }, (_, step) => step));
    expect(slowly.error).toMatchObject({ code: "slow_consumer", engine: 0 });
    await expectSilence(engine);
  });

  it("is not aborted where the request has ended meanwhile", async () => {
    const { engine, generate } = await connect();
    const slow = generate({ rid: "slow" }, { bufferedTokens: 1 });
    await receiveAdd(engine);
    await engine.send(batchOf([{ rid: "slow", ids: [1] }]));
    await engine.send(batchOf([{ rid: "slow", ids: [2], finish: "stop" }]));
    await expectSilence(engine);
    expect(await read(slow)).toMatchObject({ ids: [1], error: { code: "slow_consumer" } });
  });
});

describe("an engine that dies", () => {
  const deaths: readonly [how: string, die: (engine: ScriptedEngine) => unknown][] = [
    ["says so", (engine) => engine.sayDead()],
    ["is killed", (engine) => engine.close()],
  ];
  it.each(deaths)("and %s ends exactly its 500 streams, behind what they had", async (_, die) => {
    const { client, engines, generate } = await connect(2);
    const [dying, living] = engines as [ScriptedEngine, ScriptedEngine];
    const streams = [0, 1].map((engine) =>
      Array.from({ length: 500 }, (_, index) => generate({ rid: `${engine}-${index}` }, { engine })),
    ) as [OutputStream[], OutputStream[]];
    for (let index = 0; index < 500; index++) await Promise.all([receiveAdd(dying), receiveAdd(living)]);
    await dying.send(batchOf(streams[0].map(({ rid }) => ({ rid, ids: [5] }))));
    // each has its chunk before the engine goes
    for (const stream of streams[0]) expect((await stream.next()).value?.outputIds).toEqual([5]);
    const dead = Promise.all(streams[0].map(read));
    await die(dying);
    for (const { ids, error } of await dead) {
      expect(ids).toEqual([]);
      expect(error).toMatchObject({ code: "engine_dead", engine: 0 });
    }
    await living.send(batchOf(streams[1].map(({ rid }) => ({ rid, ids: [6], finish: "stop" }))));
    for (const { ids, error } of await Promise.all(streams[1].map(read))) {
      expect(error).toBeUndefined();
      expect(ids).toEqual([6]);
    }
    expect(await failureOf(generate({}, { engine: 0 }).next())).toMatchObject({ code: "engine_dead", engine: 0 });
    // the routing leaves it out
    expect([generate(), generate(), generate()].map(({ engine }) => engine)).toEqual([1, 1, 1]);
    expect(client.connection.engines.map(({ inFlight }) => inFlight)).toEqual([0, 3]);
    await expectSilence(dying).catch(() => {});
  });

  it("was the last: later requests say so", async () => {
    const { client, engine, generate } = await connect();
    await engine.sayDead();
    await vi.waitFor(() => expect(client.connection.engines[0]?.state).toBe("dead"), 5000);
    const failure = await failureOf(generate().next());
    expect(failure).toMatchObject({ code: "engine_dead" });
    expect(failure.message).toContain("every engine is dead");
  });
});

describe("output that cannot be", () => {
  it("of unknown requests is counted and reported, and harms nobody", async () => {
    const { client, engine, generate } = await connect();
    const events = client.connection.events();
    const stream = generate({ rid: "a" });
    await receiveAdd(engine);
    const rows = [{ rid: "x", ids: [1] }, { rid: "a", ids: [5], finish: "stop" }, { rid: "y", ids: [2] }]; // biome-ignore format: one line
    await engine.send(batchOf(rows));
    expect((await read(stream)).ids).toEqual([5]);
    expect(client.connection.counts.unexpectedOutputs).toBe(2);
    expect((await events.next()).value).toEqual({ type: "unexpected_output", engine: 0, rid: "x" });
    expect((await events.next()).value).toEqual({ type: "unexpected_output", engine: 0, rid: "y" });
  });

  it("comes once more behind the end, is counted too", async () => {
    const { client, engine, generate } = await connect();
    const stream = generate({ rid: "a" });
    await receiveAdd(engine);
    for (let times = 0; times < 2; times++) await engine.send(batchOf([{ rid: "a", ids: [5], finish: "stop" }]));
    expect((await read(stream)).ids).toEqual([5]);
    await vi.waitFor(() => expect(client.connection.counts.unexpectedOutputs).toBe(1), 5000);
  });

  const columns = {
    outputIds: [[5]],
    finishedReasons: [""],
    promptTokens: [1, 2, 3],
    completionTokens: [],
    cachedTokens: [1],
    outputTokenLogprobsVal: [[1]],
    outputTokenLogprobsIdx: [[1], []],
    finishReasonDetails: [null],
    specVerifyCt: [1],
    acceptDraftTokens: [null],
    inputTokenLogprobsVal: [[1], [1]],
    inputTokenLogprobsIdx: [[], [1]],
    inputTopLogprobsVal: [[], []],
    inputTopLogprobsIdx: [[]],
    outputTopLogprobsVal: [[[1]], []],
    outputTopLogprobsIdx: [[], []],
  };
  it.each(Object.entries(columns))("with a column %s of another length is refused whole", async (column, values) => {
    const { client, engine, generate } = await connect();
    const events = client.connection.events();
    const streams = [generate({ rid: "a" }), generate({ rid: "b" }), generate({ rid: "c" })] as const;
    for (const _ of streams) await receiveAdd(engine);
    await engine.send(batchOf([{ rid: "a", ids: [5] }, { rid: "b", ids: [6] }], { [column]: values })); // biome-ignore format: one line
    const { value: event } = (await events.next()) as { value: ConnectionEvent };
    expect(event).toMatchObject({ type: "malformed_message", engine: 0, error: { code: "malformed" } });
    // those it named would miss tokens from here on
    for (const stream of streams.slice(0, 2)) {
      expect(await read(stream)).toMatchObject({ ids: [], error: { code: "malformed", engine: 0 } });
    }
    expect(await receiveAbort(engine)).toEqual(["a", "b"]);
    await engine.send(batchOf([{ rid: "c", ids: [7], finish: "stop" }]));
    expect((await read(streams[2])).ids).toEqual([7]);
    expect(client.connection.counts).toMatchObject({ malformedMessages: 1, unexpectedOutputs: 0 });
  });

  it.each([
    ["without ids", batchOf([], { rids: null })],
    ["that ends too early", encodeAny(["BatchTokenIDOutSlim", ["a"], [[5]]])],
  ])("%s fails every stream of that engine, since nobody knows whose tokens it had", async (_, frame) => {
    const { client, engines, generate } = await connect(2);
    const [first, second] = engines as [ScriptedEngine, ScriptedEngine];
    const [hurt, other] = [generate({ rid: "a" }, { engine: 0 }), generate({ rid: "b" }, { engine: 1 })];
    await Promise.all([receiveAdd(first), receiveAdd(second)]);
    await first.send(frame);
    expect(await read(hurt)).toMatchObject({ error: { code: "malformed", engine: 0 } });
    expect(await receiveAbort(first)).toEqual(["a"]);
    await second.send(batchOf([{ rid: "b", ids: [5], finish: "stop" }]));
    expect((await read(other)).ids).toEqual([5]);
    expect(client.connection.counts.malformedMessages).toBe(1);
  });
});

describe("a load", () => {
  const load = { numRunning: 3, numWaiting: 2, kvActivePages: 40, kvTotalPages: 64 };

  it("is what an engine said last, with its age, and not what it said before it went idle", async () => {
    const { client, engine, generate } = await connect();
    expect(client.connection.engines[0]).not.toHaveProperty("load");
    const events = client.connection.events();
    const stream = generate({ rid: "a" });
    await receiveAdd(engine);
    expect(client.connection.engines[0]).toMatchObject({ inFlight: 1 });
    await engine.send(batchOf([{ rid: "a", ids: [5] }], load));
    await stream.next();
    const busy = { running: 3, waiting: 2, kvActivePages: 40, kvTotalPages: 64 };
    expect(client.connection.engines[0]?.load).toMatchObject(busy);
    expect(client.connection.engines[0]?.load?.ageMs).toBeGreaterThanOrEqual(0);
    expect((await events.next()).value).toMatchObject({ type: "load", engine: 0, load: busy });
    // no pages at all is no load
    await engine.send(batchOf([{ rid: "a", ids: [6] }], { ...load, numRunning: 9, kvTotalPages: 0 }));
    await stream.next();
    expect(client.connection.engines[0]?.load).toMatchObject(busy);
    await engine.send(batchOf([{ rid: "a", ids: [7], finish: "stop" }], load));
    await stream.next();
    expect(client.connection.engines[0]).toMatchObject({
      inFlight: 0,
      load: { running: 0, waiting: 0, kvActivePages: 0, kvTotalPages: 64 },
    });
  });

  it("decides where routing by cache goes", async () => {
    const { engines, generate } = await connect(3, { routing: "minimum-cache-usage" });
    const pages = [40, 5, 20];
    for (const [index, engine] of engines.entries()) {
      const stream = generate({ rid: `r${index}` }, { engine: index });
      await receiveAdd(engine);
      await engine.send(batchOf([{ rid: `r${index}`, ids: [5] }], { ...load, kvActivePages: pages[index] as number }));
      await stream.next();
    }
    expect(generate().engine).toBe(1);
  });
});

describe("closing", () => {
  it("ends streams with closed, aborts their requests, and refuses later ones", async () => {
    const { client, engine, generate } = await connect(1, { lingerMs: 2000 });
    const streams = Array.from({ length: 50 }, (_, index) => generate({ rid: `r${index}` }));
    for (const _ of streams) await receiveAdd(engine);
    const ended = Promise.all(streams.map(read));
    await client.close("done");
    for (const { error } of await ended) expect(error).toMatchObject({ code: "closed" });
    expect(await receiveAbort(engine)).toEqual(streams.map(({ rid }) => rid));
    expect(await failureOf(generate().next())).toMatchObject({ code: "closed" });
  });

  it("hands over what was sent just before", async () => {
    const { client, engine, generate } = await connect(1, { lingerMs: 2000 });
    const streams = Array.from({ length: 50 }, (_, index) => generate({ rid: `r${index}` }));
    for (const _ of streams) await receiveAdd(engine);
    await Promise.all(streams.map((stream) => stream.return()));
    await client.close();
    expect(await receiveAbort(engine)).toHaveLength(50);
  });
});
