// Streams against engines that do exactly what a test tells them.
import { describe, expect, it, vi } from "vitest";
import type { OutputStream } from "../../src/index.ts";
import { read } from "../behaviours/outcomes.ts";
import { batchOf } from "../behaviours/output.ts";
import { collectGarbage } from "./garbage-collector.ts";
import type { ScriptedEngine } from "./scripted-engine.ts";
import { failureOf } from "./scripted-group.ts";
import { receiveAbort, receiveAdd } from "./scripted-output.ts";
import { connect, expectSilence, request } from "./scripted-streams.ts";

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
