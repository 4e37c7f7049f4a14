import { expect } from "vitest";
import type { GenerateOptions, GenerateRequest, OutputStream } from "../../src/index.ts";
import { isSleeping, request, sleeping } from "./messages.ts";
import { eventually, failureOf, read } from "./outcomes.ts";
import type { Behaviours, Rig } from "./rig.ts";

/** Opens a stream and takes its request from the engine; gives also the id that the engine knows it by. */
async function start({ connection, nextAdd }: Rig, fields: Partial<GenerateRequest> = {}, options: GenerateOptions = {}) {
  const stream = connection.generate({ ...request, ...fields }, options);
  const { rid } = await nextAdd(options.engine ?? 0);
  return { stream, rid: rid as string };
}

const columns = {
  outputTokenLogprobsVal: [[-0.5, -0.25]],
  outputTokenLogprobsIdx: [[5, 6]],
  finishReasonDetails: [{ type: "stop", matched: 6 }],
  specVerifyCt: [4],
  acceptDraftTokens: [0.75],
  inputTokenLogprobsVal: [[null, -1, -2]],
  inputTokenLogprobsIdx: [[1, 2, 3]],
  inputTopLogprobsVal: [[null, [-1]]],
  inputTopLogprobsIdx: [[null, [2]]],
  outputTopLogprobsVal: [[[-0.5, -3], [-0.25, -4]]], // biome-ignore format: two columns
  outputTopLogprobsIdx: [[[5, 9], [6, 9]]], // biome-ignore format: two columns
};

const leaving: readonly [how: string, leave: (stream: OutputStream, stop: AbortController) => Promise<void>][] = [
  [
    "breaks",
    async (stream) => {
      for await (const _ of stream) break;
    },
  ],
  ["returns", async (stream) => void (await stream.return())],
  [
    "aborts its signal",
    async (stream, stop) => {
      stop.abort(new Error("enough"));
      expect(await failureOf(stream.next())).toMatchObject({ code: "aborted", cause: { message: "enough" } });
    },
  ],
];

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
  ["something else for a signal", {}, { signal: {} }, { code: "invalid_argument", path: "signal" }],
];

/** What a connection does with requests to generate. */
export const streams: Behaviours = {
  async "streams the chunks of a request in order, and ends behind the one with a reason"(open) {
    const { connection, nextAdd, sendBatch } = await open(1);
    const stream = connection.generate({ ...request, rid: "a", stream: false });
    const { rid, ...got } = await nextAdd(0);
    expect(got).toMatchObject({ inputIds: [1, 2, 3], stream: false, samplingParams: { maxNewTokens: 8 } });
    await sendBatch(0, [{ rid: rid as string, ids: [5] }]);
    await sendBatch(0, [{ rid: rid as string, ids: [6, 7] }]);
    await sendBatch(0, [{ rid: rid as string, ids: [], finish: "length" }]);
    const { ids, last, error } = await read(stream);
    expect([ids, error]).toEqual([[5, 6, 7], undefined]);
    expect(last).toEqual({
      outputIds: [],
      finishReason: "length",
      finishDetails: null,
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
  },

  async "gives every column that an engine fills"(open) {
    const rig = await open(1);
    const { stream, rid } = await start(rig);
    await rig.sendBatch(0, [{ rid, ids: [5, 6], finish: "stop" }], { ...columns, cachedTokens: [2] });
    expect((await read(stream)).last).toEqual({
      outputIds: [5, 6],
      finishReason: "stop",
      finishDetails: { type: "stop", matched: 6 },
      promptTokens: 3,
      completionTokens: 2,
      cachedTokens: 2,
      outputTokenLogprobs: { tokenIds: [5, 6], logprobs: [-0.5, -0.25] },
      outputTopLogprobs: { tokenIds: [[5, 9], [6, 9]], logprobs: [[-0.5, -3], [-0.25, -4]] }, // biome-ignore format: two columns
      inputTokenLogprobs: { tokenIds: [1, 2, 3], logprobs: [null, -1, -2] },
      inputTopLogprobs: { tokenIds: [null, [2]], logprobs: [null, [-1]] },
      specVerifyCt: 4,
      acceptDraftTokens: 0.75,
    });
  },

  async "keeps streams apart that share batches"(open) {
    const rig = await open(1);
    const [one, other] = [await start(rig), await start(rig)];
    for (let step = 0; step < 20; step++) {
      const rows = [
        { rid: one.rid, ids: [step] },
        { rid: other.rid, ids: [100 + step] },
      ];
      await rig.sendBatch(0, step % 2 === 0 ? rows : rows.reverse());
    }
    await rig.sendBatch(
      0,
      [one, other].map(({ rid }) => ({ rid, ids: [], finish: "stop" })),
    );
    const steps = Array.from({ length: 20 }, (_, step) => step);
    const results = await Promise.all([read(one.stream), read(other.stream)]);
    expect(results.map(({ ids }) => ids)).toEqual([steps, steps.map((step) => 100 + step)]);
  },

  async "sends a request to the engine that is asked for, and says which it went to"(open) {
    const rig = await open(2);
    const { stream, rid } = await start(rig, {}, { engine: 1 });
    await rig.sendBatch(1, [{ rid, ids: [5] }]);
    await stream.next();
    expect(stream.engine).toBe(1);
    expect(rig.connection.engines.map(({ inFlight }) => inFlight)).toEqual([0, 1]);
    await rig.sendBatch(1, [{ rid, ids: [6], finish: "stop" }]);
    expect((await read(stream)).ids).toEqual([6]);
    expect(rig.connection.engines.map(({ inFlight }) => inFlight)).toEqual([0, 0]);
  },

  async "answers calls while streams run"(open) {
    const rig = await open(1);
    const { stream, rid } = await start(rig);
    for (let step = 0; step < 10; step++) {
      await rig.sendBatch(0, [{ rid, ids: [step] }]);
      const call = rig.connection.call(sleeping);
      await rig.next(0);
      await rig.send(0, isSleeping(step % 2 === 0));
      expect(await call).toMatchObject([{ reply: { isSleeping: step % 2 === 0 } }]);
      expect((await stream.next()).value?.outputIds).toEqual([step]);
    }
    await stream.return();
  },

  async "keeps every chunk for a reader that comes late, also those that a relay may not send yet"(open) {
    const rig = await open(1);
    const { stream, rid } = await start(rig);
    for (let step = 0; step < 300; step++) await rig.sendBatch(0, [{ rid, ids: [step], ...(step === 299 && { finish: "length" }) }]);
    // all of it has been taken from the engine
    const call = rig.connection.call(sleeping);
    await rig.next(0);
    await rig.send(0, isSleeping(false));
    await call;
    const { ids, last } = await read(stream);
    expect(ids).toEqual(Array.from({ length: 300 }, (_, step) => step));
    expect(last?.finishReason).toBe("length");
  },

  ...Object.fromEntries(
    leaving.map(([how, leave]) => [
      `aborts a request on its engine, once, when its reader ${how}`,
      async (open) => {
        const rig = await open(1);
        const stop = new AbortController();
        const { stream, rid } = await start(rig, {}, { signal: stop.signal });
        await rig.sendBatch(0, [{ rid, ids: [5] }]);
        await leave(stream, stop);
        expect(await stream.next()).toEqual({ value: undefined, done: true });
        expect(await rig.nextAbort(0)).toBe(rid);
        // a second abort of it would come before this one
        const second = await start(rig);
        await second.stream.return();
        stop.abort();
        expect(await rig.nextAbort(0)).toBe(second.rid);
        await eventually(() => expect(rig.connection.engines[0]?.inFlight).toBe(0));
      },
    ]),
  ),

  async "sends no request whose signal is aborted already"(open) {
    const rig = await open(1);
    const failure = await failureOf(rig.connection.generate(request, { signal: AbortSignal.abort(new Error("enough")) }).next());
    expect(failure).toMatchObject({ code: "aborted", cause: { message: "enough" } });
    const stream = rig.connection.generate({ ...request, inputIds: [9] });
    expect(await rig.nextAdd(0)).toMatchObject({ inputIds: [9] });
    await stream.return();
  },

  async "fails the stream of a reader that stalls with `slow_consumer` behind what it held, aborts it, and no other"(open) {
    const rig = await open(1);
    const [slow, quick] = [await start(rig, {}, { bufferedTokens: 10 }), await start(rig)];
    const quickly = read(quick.stream);
    for (let step = 0; step < 30; step++) {
      const rows = [slow.rid, quick.rid].map((rid) => ({ rid, ids: [step], ...(step === 29 && { finish: "length" }) }));
      // in the last step the slow one's has been given up
      await rig.sendBatch(0, step === 29 ? rows.slice(1) : rows);
    }
    expect(await quickly).toMatchObject({ ids: Array.from({ length: 30 }, (_, step) => step) });
    expect(await rig.nextAbort(0)).toBe(slow.rid);
    const { ids, error } = await read(slow.stream);
    expect(error).toMatchObject({ code: "slow_consumer" });
    // a relay holds as many, besides those that are on their way
    expect(ids).toEqual(Array.from({ length: ids.length }, (_, step) => step));
    expect([10, 20]).toContain(ids.length);
  },

  ...Object.fromEntries(
    bad.map(([what, fields, options, error]) => [
      `refuses, where the stream is read, a request with ${what}, and sends nothing`,
      async (open) => {
        const { connection, nextAdd } = await open(1);
        const stream = connection.generate({ ...request, ...fields }, options);
        expect(await failureOf(stream.next())).toMatchObject(error);
        expect(await stream.next()).toEqual({ value: undefined, done: true });
        const good = connection.generate({ ...request, inputIds: [9] });
        expect(await nextAdd(0)).toMatchObject({ inputIds: [9] });
        await good.return();
      },
    ]),
  ),

  async "refuses the id of a request in flight"(open) {
    const rig = await open(1);
    const { stream, rid } = await start(rig, { rid: "a" });
    const failure = await failureOf(rig.connection.generate({ ...request, rid: "a" }).next());
    expect(failure).toMatchObject({ code: "duplicate_request_id", path: "rid" });
    expect(failure.message).toContain('rid "a" is in flight');
    await rig.sendBatch(0, [{ rid, ids: [5], finish: "stop" }]);
    expect((await read(stream)).ids).toEqual([5]);
  },

  async "tells an engine's load, with its age, and not what it said before it went idle"(open) {
    const rig = await open(1);
    const { connection, sendBatch } = rig;
    const load = { numRunning: 3, numWaiting: 2, kvActivePages: 40, kvTotalPages: 64 };
    const busy = { running: 3, waiting: 2, kvActivePages: 40, kvTotalPages: 64 };
    expect(connection.engines[0]).not.toHaveProperty("load");
    const events = connection.events();
    const { stream, rid } = await start(rig);
    await sendBatch(0, [{ rid, ids: [5] }], load);
    await stream.next();
    expect((await events.next()).value).toMatchObject({ type: "load", engine: 0, load: busy });
    expect(connection.engines[0]?.load).toMatchObject(busy);
    expect(connection.engines[0]?.load?.ageMs).toBeGreaterThanOrEqual(0);
    await sendBatch(0, [{ rid, ids: [7], finish: "stop" }], load);
    await read(stream);
    const idle = { running: 0, waiting: 0, kvActivePages: 0, kvTotalPages: 64 };
    await eventually(() => expect(connection.engines[0]).toMatchObject({ inFlight: 0, load: idle }));
  },
};
