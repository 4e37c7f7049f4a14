import { describe, expect, it } from "vitest";
import WebSocket from "ws";
import { encodeStreamCredit, encodeStreamOpen } from "../../generated/relay/encoders.ts";
import type { GenerateRequest, OutputChunk, OutputStream } from "../../src/index.ts";
import { tokenOf } from "../../src/testing/index.ts";
import { connect } from "../../src/web/index.ts";
import { serveSimulated } from "../contract/relayed-group.ts";
import { collectGarbage } from "../faults/garbage-collector.ts";
import { failureOf } from "../faults/scripted-group.ts";
import { proxyOf } from "./proxy.ts";
import { RawClient } from "./raw-client.ts";
import { endOf, open, type Taken } from "./stream-messages.ts";

const short = { inputIds: [1, 2, 3], samplingParams: { maxNewTokens: 5 } };
const endless = { inputIds: [1, 2, 3], samplingParams: { maxNewTokens: 3000 } };

async function tokensOf(stream: OutputStream): Promise<number[]> {
  const tokens: number[] = [];
  for await (const { outputIds } of stream) tokens.push(...outputIds);
  return tokens;
}

const expected = (count: number) => Array.from({ length: count }, (_, position) => tokenOf(0, position));

describe("streams through a relay", () => {
  it("give what the engine says, column by column", async () => {
    const { join, near } = await serveSimulated({ ranks: 2, outputLogprobs: true });
    const { connection } = await join();
    const request = { ...short, returnLogprob: true, topLogprobsNum: 2, logprobStartLen: 0, samplingParams: { maxNewTokens: 1 } };
    const read = async (stream: OutputStream): Promise<OutputChunk[]> => {
      const chunks: OutputChunk[] = [];
      for await (const chunk of stream) chunks.push(chunk);
      return chunks;
    };
    const stream = connection.generate(request, { engine: 1 });
    const [far, direct] = await Promise.all([read(stream), read(near.connection.generate(request, { engine: 1 }))]);
    expect(far).toEqual(direct);
    expect(far.at(-1)).toMatchObject({ finishReason: "length", finishDetails: { type: "length" } });
    expect(far.some(({ inputTopLogprobs }) => inputTopLogprobs !== null)).toBe(true);
    expect(stream.engine).toBe(1);
  });

  it("are many at a time, each with exactly its tokens, longer than its credit", async () => {
    const { join } = await serveSimulated({ ranks: 2, maxBatch: 256, kvPages: 10_000 }, { limits: { callsPerSecond: 1000 } });
    const clients = await Promise.all([join(), join()]);
    const lengths = Array.from({ length: 300 }, (_, index) => 1 + index);
    const reading = lengths.map((maxNewTokens, index) =>
      tokensOf((clients[index % 2] as (typeof clients)[0]).connection.generate({ inputIds: [1], samplingParams: { maxNewTokens } })),
    );
    for (const [index, tokens] of (await Promise.all(reading)).entries()) expect(tokens).toEqual(expected(lengths[index] as number));
  });

  it("of two clients under one id do not meet", async () => {
    const { join } = await serveSimulated({ forwardMs: 2 });
    const clients = await Promise.all([join(), join()]);
    const streams = clients.map(({ connection }, index) =>
      tokensOf(connection.generate({ rid: "same", inputIds: [1], samplingParams: { maxNewTokens: 4 + index } })),
    );
    expect(await Promise.all(streams)).toEqual([expected(4), expected(5)]);
  });

  it.each(["returns", "aborts"] as const)("abort their request when the reader %s", async (how) => {
    const { join, near } = await serveSimulated({ forwardMs: 2 });
    const { connection } = await join();
    const controller = new AbortController();
    const stream = connection.generate(endless, { signal: controller.signal });
    await stream.next();
    expect(connection.engines[0]?.inFlight).toBe(1);
    if (how === "returns") await stream.return();
    else controller.abort();
    if (how === "aborts") expect(await failureOf(stream.next())).toMatchObject({ code: "aborted" });
    expect(await stream.next()).toEqual({ value: undefined, done: true });
    await expect.poll(() => near.connection.engines[0]?.inFlight).toBe(0);
    expect(connection.engines[0]?.inFlight).toBe(0);
  });

  it("abort their request when nobody holds them any more", async () => {
    const { join, near } = await serveSimulated({ forwardMs: 2 });
    const { connection } = await join();
    await (async () => void (await connection.generate(endless).next()))();
    expect(near.connection.engines[0]?.inFlight).toBe(1);
    const inFlight = (): number | undefined => {
      collectGarbage();
      return near.connection.engines[0]?.inFlight;
    };
    await expect.poll(inFlight, { timeout: 10_000 }).toBe(0);
  });

  it("end with outcome_unknown when the relay is lost, and their requests are aborted", async () => {
    const { relay, near } = await serveSimulated({ forwardMs: 2 });
    const proxy = await proxyOf(relay.url);
    const connection = await connect(proxy.url, { WebSocket, firstDelayMs: 20, longestDelayMs: 100 });
    const stream = connection.generate(endless);
    await stream.next();
    proxy.cut();
    const failure = await failureOf(tokensOf(stream));
    expect(failure).toMatchObject({ code: "outcome_unknown", stage: "reply" });
    await expect.poll(() => near.connection.engines[0]?.inFlight).toBe(0);
    // one that is new waits for the next connection
    expect(await tokensOf(connection.generate(short))).toEqual(expected(5));
    await connection.close();
    expect(await failureOf(connection.generate(short).next())).toMatchObject({ code: "closed" });
  });

  it("end with closed when their own side closes, and with going_away when they come too late", async () => {
    const { relay, join, near } = await serveSimulated({ forwardMs: 2 });
    const { connection } = await join();
    const stream = connection.generate(endless);
    await stream.next();
    const ended = failureOf(tokensOf(stream));
    await connection.close();
    expect(await ended).toMatchObject({ code: "closed" });
    await expect.poll(() => near.connection.engines[0]?.inFlight).toBe(0);

    const raw = await new RawClient(relay.url).hello();
    raw.socket.send(open({ id: 1 }, endless));
    await raw.take(({ $tag }) => $tag === "StreamOpened");
    const closing = relay.close("maintenance", { drainMs: 500 });
    await raw.take(({ $tag }) => $tag === "GoingAway");
    raw.socket.send(open({ id: 2 }, short));
    expect(await endOf(raw, 2)).toMatchObject({ failure: { code: "going_away" } });
    await closing;
    await expect.poll(() => near.connection.engines[0]?.inFlight).toBe(0);
  });

  it("refuse what must not leave in the words of the connection, and in their own what the client can know", async () => {
    const { join } = await serveSimulated();
    const { connection } = await join();
    expect(await failureOf(connection.generate({ ...short, inputIds: [] }).next())).toMatchObject({ code: "refused" });
    expect(await failureOf(connection.generate(short, { engine: 9 }).next())).toMatchObject({ code: "invalid_argument", path: "engine" });
    expect(await failureOf(connection.generate({ ...short, inputIds: ["x"] as never }).next())).toMatchObject({ code: "invalid_value" });
    expect(await failureOf(connection.generate(short, { engines: [0] } as never).next())).toMatchObject({ code: "invalid_argument" });
    const running = connection.generate({ ...endless, rid: "a" });
    expect(await failureOf(connection.generate({ ...short, rid: "a" }).next())).toMatchObject({ code: "duplicate_request_id" });
    await running.return();
  });

  it("bring loads to the far side", async () => {
    const { join } = await serveSimulated();
    const { connection } = await join();
    const events = connection.events();
    expect(connection.engines[0]).not.toHaveProperty("load");
    await tokensOf(connection.generate(short));
    for await (const event of events) if (event.type === "load") break;
    expect(connection.engines[0]?.load).toMatchObject({ kvTotalPages: 512 });
    const { connection: late } = await join();
    expect(late.engines[0]?.load).toMatchObject({ running: 0, kvTotalPages: 512 });
  });
});

describe("a stream's credit", () => {
  it("is all that is sent; more of it lets the stream go on", async () => {
    const { relay, near } = await serveSimulated();
    const raw = await new RawClient(relay.url).hello();
    raw.socket.send(open({ id: 7, credit: 3 }, { ...short, samplingParams: { maxNewTokens: 10 } }));
    const ids: number[] = [];
    const takeChunks = async (until: number): Promise<void> => {
      while (ids.length < until) {
        const { ids: streams, chunks } = await raw.take<Taken<"StreamChunks">>(({ $tag }) => $tag === "StreamChunks");
        expect(new Set(streams)).toEqual(new Set([7]));
        for (const { outputIds } of chunks) ids.push(...outputIds);
      }
    };
    await takeChunks(3);
    // the engine has long ended it
    await expect.poll(() => near.connection.engines[0]?.inFlight).toBe(0);
    raw.call(8, { $tag: "IsSleepingReqInput" });
    await raw.completed(8);
    expect(ids).toHaveLength(3);
    expect(raw.messages.filter(({ $tag }) => $tag === "StreamChunks" || $tag === "StreamEnd")).toEqual([]);
    raw.socket.send(encodeStreamCredit({ ids: [7], credits: [100] }));
    await takeChunks(10);
    expect(await endOf(raw, 7)).toMatchObject({ failure: null });
    expect(ids).toEqual(expected(10));
    // credit that comes too late is no mistake
    raw.socket.send(encodeStreamCredit({ ids: [7], credits: [1] }));
    raw.call(9, { $tag: "IsSleepingReqInput" });
    expect((await raw.completed(9)).failure).toBeNull();
  });

  it("for many streams goes in few messages, so that they do not count as a flood", { timeout: 60_000 }, async () => {
    const { relay, near, engine } = await serveSimulated(
      { maxBatch: 256, kvPages: 10_000, forwardMs: 1 },
      { limits: { callsPerSecond: 256, connections: 8 } },
    );
    const connection = await connect(relay.url, { WebSocket });
    const request = { inputIds: [1], samplingParams: { maxNewTokens: 400 } };
    const streams = Array.from({ length: 256 }, () => tokensOf(connection.generate(request)));
    for (const tokens of await Promise.all(streams)) expect(tokens).toEqual(expected(400));
    await connection.close();
    expect([near.connection.engines[0]?.inFlight, engine.state(0).received.size]).toEqual([0, 1]);
  });

  it("that is never given fails the stream with slow_consumer behind what was allowed, and nobody else", async () => {
    const { relay, join, near } = await serveSimulated({ maxModelLen: 40_000, kvPages: 10_000, forwardMs: 0 });
    const raw = await new RawClient(relay.url).hello();
    raw.socket.send(open({ id: 1, credit: 2 }, { inputIds: [1], samplingParams: { maxNewTokens: 30_000 } }));
    await expect.poll(() => near.connection.engines[0]?.inFlight, { timeout: 30_000 }).toBe(1);
    const { connection } = await join();
    expect(await tokensOf(connection.generate(short))).toEqual(expected(5));
    await expect.poll(() => near.connection.engines[0]?.inFlight, { timeout: 30_000 }).toBe(0);
    raw.socket.send(encodeStreamCredit({ ids: [1], credits: [1_000_000] }));
    expect(await endOf(raw, 1)).toMatchObject({ failure: { code: "slow_consumer" } });
  });
});

describe("what a credential allows", () => {
  const tokens = new Map([
    ["reader", { name: "reader", scopes: ["read"] as const }],
    ["writer", { name: "writer", scopes: ["read", "generate"] as const, engines: [1] }],
    ["trusted", { name: "trusted", scopes: ["generate", "unpickle"] as const }],
  ]);
  const serveTokens = () =>
    serveSimulated({ ranks: 2 }, { authenticate: async ({ token }) => tokens.get(token ?? "") as never, audit: { write: () => {} } });

  it("decides whether it may generate, and where", async () => {
    const { join } = await serveTokens();
    const { connection: reader } = await join({ token: "reader" });
    expect(await failureOf(reader.generate(short).next())).toMatchObject({ code: "forbidden", found: "generate" });
    const { connection: writer } = await join({ token: "writer" });
    const stream = writer.generate(short);
    expect(await tokensOf(stream)).toEqual(expected(5));
    expect(stream.engine).toBe(1);
    expect(await failureOf(writer.generate(short, { engine: 0 }).next())).toMatchObject({ code: "forbidden", found: "engine 0" });
  });

  const trusting: readonly [field: string, fields: Partial<GenerateRequest>][] = [
    ["customLogitProcessor", { customLogitProcessor: "gASV" }],
    ["bootstrapHost", { bootstrapHost: "10.0.0.1" }],
    ["featureShm", { multimodalInputs: { mmItems: [{ modality: 1, featureShm: { shmName: "/psm_1", shape: [1], dtype: "uint8" } }] } }],
  ];
  it.each(trusting)("decides over %s, which has an engine run, open or call what the client names", async (_, fields) => {
    const { join } = await serveTokens();
    const { connection: writer } = await join({ token: "writer" });
    expect(await failureOf(writer.generate({ ...short, ...fields }).next())).toMatchObject({ code: "forbidden", found: "unpickle" });
    const { connection: trusted } = await join({ token: "trusted" });
    let last: OutputChunk | undefined;
    for await (const chunk of trusted.generate({ ...short, ...fields })) last = chunk;
    expect(last?.finishReason).not.toBeNull();
  });
});

describe("limits", () => {
  it("hold for streams open at a time, ids in use, and bytes that are no request", async () => {
    const { relay } = await serveSimulated({ forwardMs: 5 }, { limits: { streams: 2 } });
    const raw = await new RawClient(relay.url).hello();
    for (const id of [1, 2, 3]) raw.socket.send(open({ id }, endless));
    expect(await endOf(raw, 3)).toMatchObject({ failure: { code: "limit_exceeded", path: "streams" } });
    raw.socket.send(open({ id: 2 }, short));
    expect(await raw.take(({ $tag }) => $tag === "Refused")).toMatchObject({ id: 2, failure: { code: "invalid_argument" } });
    raw.call(1, { $tag: "IsSleepingReqInput" });
    expect(await raw.take(({ $tag }) => $tag === "Refused")).toMatchObject({ id: 1 });
    raw.socket.send(encodeStreamOpen({ id: 4, request: Uint8Array.of(0xc1), tensors: [], engine: null, credit: 1 }));
    expect((await endOf(raw, 4)).failure?.code).toMatch(/malformed|limit_exceeded/);
  });
});
