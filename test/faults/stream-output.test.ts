// Streams, and engines that die, say what cannot be, or report their load.
import { describe, expect, it, vi } from "vitest";
import type { ConnectionEvent, OutputStream } from "../../src/index.ts";
import { encodeAny } from "../../src/wire/index.ts";
import { read } from "../behaviours/outcomes.ts";
import { batchOf } from "../behaviours/output.ts";
import type { ScriptedEngine } from "./scripted-engine.ts";
import { failureOf } from "./scripted-group.ts";
import { receiveAbort, receiveAdd } from "./scripted-output.ts";
import { connect, expectSilence } from "./scripted-streams.ts";

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
