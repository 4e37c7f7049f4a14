// Streams and simulated engines on real sockets.
import { describe, expect, it, onTestFinished } from "vitest";
import { createClient, isEngineWireError, type OutputChunk, type OutputStream } from "../../src/index.ts";
import { type BindOptions, bind } from "../../src/node/index.ts";
import { positionOfToken, type SimulatedEngineOptions, startEngine, tokenOf, weightsOfToken } from "../../src/testing/index.ts";
import { failureOf } from "../faults/scripted-group.ts";
import { bucket, group } from "./simulated-group.ts";

async function connect(options: Omit<SimulatedEngineOptions, "handshake"> = {}, bindOptions: Partial<BindOptions> = {}) {
  const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: options.ranks ?? 1, lingerMs: 0, ...bindOptions });
  onTestFinished(() => listener.close());
  const starting = startEngine({ handshake: listener.handshakeAddress, ...options });
  const connection = await listener.accept({ timeoutMs: 20_000 });
  const engine = await starting;
  onTestFinished(() => engine.close());
  return { connection, client: createClient(connection), engine };
}

async function tokensOf(stream: OutputStream): Promise<number[]> {
  const tokens: number[] = [];
  for await (const { outputIds } of stream) tokens.push(...outputIds);
  return tokens;
}

const expected = (count: number, updates = 0) => Array.from({ length: count }, (_, position) => tokenOf(updates, position));

describe("generation", () => {
  it("ends at the budget, at a stop token, and with the engine's words where it refuses", async () => {
    const { connection } = await connect();
    const inputIds = [1, 2, 3];
    expect(await tokensOf(connection.generate({ inputIds, samplingParams: { maxNewTokens: 5 } }))).toEqual(expected(5));
    const last = async (samplingParams: object): Promise<OutputChunk | undefined> => {
      let chunk: OutputChunk | undefined;
      for await (chunk of connection.generate({ inputIds, samplingParams }));
      return chunk;
    };
    expect(await last({ maxNewTokens: 50, stopTokenIds: [tokenOf(0, 7)] })).toMatchObject({
      finishReason: "stop",
      finishDetails: { type: "stop", matched: tokenOf(0, 7) },
      completionTokens: 8,
      promptTokens: 3,
    });
    expect(await last({ topP: 7 })).toMatchObject({
      finishReason: "abort",
      finishDetails: { type: "abort", status_code: 400, message: expect.stringContaining("top_p must be in (0, 1]") },
    });
  });

  it("spreads over a group in turn, and each engine's load is known", async () => {
    const { connection } = await connect({ ranks: 4 });
    const streams = Array.from({ length: 8 }, () => connection.generate({ inputIds: [1], samplingParams: { maxNewTokens: 20 } }));
    expect(streams.map(({ engine }) => engine)).toEqual([0, 1, 2, 3, 0, 1, 2, 3]);
    expect(connection.engines.map(({ inFlight }) => inFlight)).toEqual([2, 2, 2, 2]);
    for (const tokens of await Promise.all(streams.map(tokensOf))) expect(tokens).toEqual(expected(20));
    for (const { inFlight, load } of connection.engines) {
      expect(inFlight).toBe(0);
      expect(load).toMatchObject({ running: 0, waiting: 0, kvActivePages: 0, kvTotalPages: 512 });
    }
  });

  it("shows in its tokens which weights served it, over an update under a frozen request too", async () => {
    const { connection, client } = await connect({ forwardMs: 2 });
    await client.initWeightsUpdateGroup(group);
    const stream = connection.generate({ inputIds: [1], samplingParams: { maxNewTokens: 60 } });
    await stream.next();
    await client.pauseScheduler({ mode: "keep" });
    await client.updateWeightsFromDistributed({ ...bucket, flushCache: false });
    await client.resumeScheduler();
    const tokens = [tokenOf(0, 0), ...(await tokensOf(stream))];
    expect(tokens.map(positionOfToken)).toEqual(Array.from({ length: 60 }, (_, position) => position));
    const weights = tokens.map(weightsOfToken);
    expect(weights).toEqual(weights.toSorted());
    expect(new Set(weights)).toEqual(new Set([0, 1]));
    expect(await tokensOf(connection.generate({ inputIds: [1], samplingParams: { maxNewTokens: 3 } }))).toEqual(expected(3, 1));
  });

  it("ends with abort when a pause aborts it, and waits when a pause holds it", async () => {
    const { connection, client } = await connect({ forwardMs: 2 });
    const long = { inputIds: [1], samplingParams: { maxNewTokens: 3000 } };
    const running = connection.generate(long);
    await running.next();
    const ended = (async () => {
      for await (const { finishReason, finishDetails } of running) if (finishReason !== null) return finishDetails;
      return undefined;
    })();
    await client.pauseScheduler({ mode: "abort" });
    expect(await ended).toMatchObject({ message: "Aborted by pause" });
    const held = tokensOf(connection.generate({ inputIds: [1], samplingParams: { maxNewTokens: 4 } }));
    await client.resumeScheduler();
    expect(await held).toEqual(expected(4));
  });

  it("refuses what would end the engine: more than its whole cache holds", async () => {
    const { connection } = await connect({ kvPages: 8, maxModelLen: 4096 });
    const inputIds = Array.from({ length: 28 }, (_, index) => index);
    const tooMuch = await failureOf(connection.generate({ inputIds, samplingParams: { maxNewTokens: 101 } }).next());
    expect(tooMuch).toMatchObject({ code: "refused", path: "TokenizedGenerateReqInput.samplingParams.maxNewTokens" });
    expect(tooMuch.message).toContain("prompt and budget are 28 + 101 tokens, and the whole cache of the engine holds 128");
    // without a budget of its own it is given all of the context
    expect(await failureOf(connection.generate({ inputIds, samplingParams: {} }).next())).toMatchObject({ code: "refused" });
    expect(await tokensOf(connection.generate({ inputIds, samplingParams: { maxNewTokens: 100 } }))).toEqual(expected(100));
  });

  it("brings logprobs where the engine was started with them", async () => {
    const { connection } = await connect({ outputLogprobs: true });
    const request = { inputIds: [1, 2], returnLogprob: true, samplingParams: { maxNewTokens: 3 } };
    const ids: number[] = [];
    for await (const { outputIds, outputTokenLogprobs } of connection.generate(request)) {
      ids.push(...outputIds);
      expect(outputTokenLogprobs?.tokenIds).toEqual(outputIds);
      for (const logprob of outputTokenLogprobs?.logprobs ?? []) expect(logprob).toBeLessThan(0);
    }
    expect(ids).toEqual(expected(3));
  });
});

describe("2,000 streams at a time", () => {
  it("each end with exactly their tokens while pauses freeze and resumes release them", { timeout: 120_000 }, async () => {
    const streams = 2000;
    const { connection, client } = await connect({ ranks: 4, maxBatch: 512, kvPages: 40_000, forwardMs: 4 });
    const lengths = Array.from({ length: streams }, (_, index) => 100 + (index % 101));
    let pauses = 0;
    let done = false;
    const pausing = (async () => {
      while (!done) {
        await client.pauseScheduler({ mode: "keep" });
        pauses++;
        await new Promise((resolve) => setTimeout(resolve, 20));
        await client.resumeScheduler();
        if (!done) await new Promise((resolve) => setTimeout(resolve, 180));
      }
    })();
    const reading = lengths.map((maxNewTokens, index) =>
      tokensOf(connection.generate({ inputIds: [index, 1], samplingParams: { maxNewTokens } }, { bufferedTokens: 1000 })),
    );
    const start = performance.now();
    const results = await Promise.allSettled(reading);
    done = true;
    await pausing;
    for (const [index, result] of results.entries()) {
      if (result.status === "rejected") throw isEngineWireError(result.reason) ? new Error(result.reason.message) : result.reason;
      expect(result.value).toEqual(expected(lengths[index] as number));
    }
    const tokens = lengths.reduce((sum, length) => sum + length);
    process.stdout.write(`${streams} streams, ${tokens} tokens, ${pauses} pauses, ${((performance.now() - start) / 1000).toFixed(1)} s\n`);
    expect(pauses).toBeGreaterThanOrEqual(3);
    expect(connection.counts).toMatchObject({ unexpectedOutputs: 0, malformedMessages: 0 });
    expect(connection.engines.map(({ inFlight }) => inFlight)).toEqual([0, 0, 0, 0]);
  });
});
