// What every kind of connection does, whatever carries it: one suite of behaviours, run over each.
import { describe, expect, it } from "vitest";
import { type ConnectionEvent, createClient } from "../../src/index.ts";
import { failureOf } from "../faults/scripted-group.ts";
import { transports } from "./transports.ts";

const sleeping = { $tag: "IsSleepingReqInput" } as const;
const flushing = { $tag: "FlushCacheReqInput" } as const;
const isSleeping = (value: boolean) => ({ $tag: "IsSleepingReqOutput", isSleeping: value }) as const;
const flushed = { $tag: "FlushCacheReqOutput", success: true } as const;
const paused = (success: boolean, message = "") => ({ $tag: "PauseSchedulerReqOutput", success, message }) as const;

describe.each(Object.entries(transports))("over %s", (_, open) => {
  it("tells its engines", async () => {
    const { connection } = await open(2);
    expect(connection.engines).toMatchObject([
      {
        index: 0,
        state: "up",
        capabilities: { control: true, dialect: "tagged", release: "0.1.0" },
        registration: { vllmVersion: "tokenspeed-0.1.0" },
      },
      { index: 1, state: "up" },
    ]);
  });

  it("carries requests unchanged and gives replies in engine order", async () => {
    const { connection, next, send } = await open(2);
    const request = {
      $tag: "UpdateWeightsFromDistributedReqInput",
      names: ["ä", "b".repeat(300)],
      dtypeNames: ["bfloat16", "float32"],
      shapes: [[2 ** 31], []],
      weightVersion: "七",
    } as const;
    // past the guard, which a relay has in common for all
    const call = createClient(connection).control(request, { guard: false });
    for (const engine of [0, 1]) expect(await next(engine)).toMatchObject({ ...request, flushCache: true });
    await send(1, { $tag: "UpdateWeightsFromDistributedReqOutput", success: false, message: "β" });
    await send(0, { $tag: "UpdateWeightsFromDistributedReqOutput", success: true, message: "" });
    const replies = await call;
    expect(replies).toMatchObject([
      { engine: 0, reply: { success: true } },
      { engine: 1, reply: { success: false, message: "β" } },
    ]);
    for (const { durationMs } of replies) expect(durationMs).toBeGreaterThan(0);
  });

  it("tells each reply as it arrives", async () => {
    const { connection, next, send } = await open(2);
    const heard: number[] = [];
    const call = connection.call(sleeping, { onReply: ({ engine }) => heard.push(engine) });
    await Promise.all([next(0), next(1)]);
    await send(1, isSleeping(true));
    await expect.poll(() => heard).toEqual([1]);
    await send(0, isSleeping(false));
    expect((await call).map(({ engine }) => engine)).toEqual([0, 1]);
    expect(heard).toEqual([1, 0]);
  });

  it("asks only the engines it is told", async () => {
    const { connection, next, send } = await open(2);
    const call = connection.call(sleeping, { engines: [1] });
    await next(1);
    await send(1, isSleeping(true));
    expect(await call).toMatchObject([{ engine: 1, reply: { isSleeping: true } }]);
    expect((await failureOf(connection.call(sleeping, { engines: [7] }))).code).toBe("invalid_argument");
  });

  it("refuses a part of the group for an operation that needs all of it", async () => {
    const { connection } = await open(2);
    const request = { $tag: "UpdateWeightFromDiskReqInput", modelPath: "/m" } as const;
    const failure = await failureOf(createClient(connection).control(request, { engines: [0], guard: false }));
    expect(failure).toMatchObject({ code: "invalid_argument", path: "engines" });
  });

  it.each([
    ["an unknown tag", { $tag: "LaunchReqInput" }, {}, "unknown_tag"],
    ["a misspelt field", { ...sleeping, isSleping: true }, {}, "unknown_field"],
    ["a field of another type", { $tag: "UpdateWeightFromDiskReqInput", modelPath: 7 }, {}, "invalid_value"],
    ["an unknown option", sleeping, { timeoutMS: 5 }, "invalid_argument"],
    ["a timeout of 0", sleeping, { timeoutMs: 0 }, "invalid_argument"],
    ["no engines", sleeping, { engines: [] }, "invalid_argument"],
    ["an unknown release", sleeping, { release: "9.9.9" }, "invalid_argument"],
  ])("refuses %s and sends nothing", async (_, request, options, code) => {
    const { connection, next, send } = await open(1);
    expect((await failureOf(connection.call(request as never, options as never))).code).toBe(code);
    const call = connection.call(flushing);
    expect(await next(0)).toMatchObject(flushing);
    await send(0, flushed);
    await call;
  });

  it("says which engines did not answer in time, and what the others said", async () => {
    const { connection, next, send } = await open(2);
    const call = failureOf(connection.call(sleeping, { timeoutMs: 300 }));
    await Promise.all([next(0), next(1)]);
    await send(0, isSleeping(true));
    expect(await call).toMatchObject({
      code: "timeout",
      operation: "isSleeping",
      stage: "reply",
      missing: [1],
      replies: [{ engine: 0, reply: { isSleeping: true } }],
    });
  });

  it("gives a repeated call its own answer, not that of the call given up before it", async () => {
    const { connection, next, send } = await open(1);
    const events = connection.events();
    expect((await failureOf(connection.call(sleeping, { timeoutMs: 50 }))).code).toBe("timeout");
    await next(0);
    const second = connection.call(sleeping);
    await send(0, isSleeping(false));
    await next(0);
    await send(0, isSleeping(true));
    expect(await second).toMatchObject([{ reply: { isSleeping: true } }]);
    const { value } = await events.next();
    expect(value).toMatchObject({
      type: "late_reply",
      engine: 0,
      tag: "IsSleepingReqOutput",
      request: sleeping,
      reply: { isSleeping: false },
    });
    expect(connection.counts.lateReplies).toBe(1);
  });

  it("rejects at once when its signal aborts, and sends nothing for one that is aborted already", async () => {
    const { connection, next, send } = await open(1);
    const stop = new AbortController();
    const call = failureOf(connection.call(sleeping, { signal: stop.signal }));
    await next(0);
    stop.abort(new Error("enough"));
    expect(await call).toMatchObject({ code: "aborted", operation: "isSleeping", cause: { message: "enough" } });
    expect((await failureOf(connection.call(flushing, { signal: stop.signal }))).code).toBe("aborted");
    const other = connection.call({ $tag: "IsSchedulerPausedReqInput" });
    expect(await next(0)).toMatchObject({ $tag: "IsSchedulerPausedReqInput" });
    await send(0, { $tag: "IsSchedulerPausedReqOutput", isPaused: true });
    await other;
  });

  it("answers many calls of several kinds, each with its own reply", async () => {
    const { connection, next, send } = await open(1);
    const calls = Array.from({ length: 30 }, (_, index) => connection.call(index % 2 === 0 ? sleeping : flushing));
    for (let index = 0; index < 30; index++) {
      const { $tag } = await next(0);
      await send(0, $tag === "IsSleepingReqInput" ? isSleeping(true) : flushed);
    }
    for (const [index, replies] of (await Promise.all(calls)).entries())
      expect(replies[0]?.reply.$tag).toBe(index % 2 === 0 ? "IsSleepingReqOutput" : "FlushCacheReqOutput");
  });

  it("fails what is pending on an engine that ends, and tells", async () => {
    const { connection, next, end } = await open(2);
    const events = connection.events();
    const call = failureOf(connection.call(sleeping));
    await Promise.all([next(0), next(1)]);
    await end(1);
    expect(await call).toMatchObject({ code: "engine_dead", engine: 1, operation: "isSleeping" });
    expect((await events.next()).value).toMatchObject({ type: "engine_dead", engine: 1, error: { code: "engine_dead" } });
    await expect.poll(() => connection.engines.map(({ state }) => state)).toEqual(["up", "dead"]);
    expect((await failureOf(connection.call(sleeping, { engines: [1] }))).code).toBe("engine_dead");
  });

  it("survives garbage of an engine, counts it and tells", async () => {
    const { connection, next, send } = await open(1);
    const events = connection.events();
    const call = connection.call(sleeping);
    await next(0);
    await send(0, Uint8Array.of(0xc1));
    await send(0, Uint8Array.of(0x91, 0xa3, 0x58, 0x59, 0x5a));
    await send(0, flushed);
    await send(0, isSleeping(true));
    expect(await call).toMatchObject([{ reply: { isSleeping: true } }]);
    const seen: ConnectionEvent["type"][] = [];
    for (let index = 0; index < 3; index++) seen.push((await events.next()).value.type);
    expect(seen).toEqual(["malformed_message", "unknown_tag", "unexpected_reply"]);
    await expect.poll(() => connection.counts).toMatchObject({ malformedMessages: 1, unknownTags: 1, unexpectedReplies: 1 });
  });

  it("has a guard that knows what replies have said, and lets one state-changing call out at a time", async () => {
    const { connection, next, send } = await open(1);
    const client = createClient(connection);
    const pausing = client.pauseScheduler({ mode: "keep" });
    const waiting: string[] = [];
    const resuming = client.flushCache({}, { onWait: (holder) => waiting.push(holder) });
    expect(await next(0)).toMatchObject({ $tag: "PauseSchedulerReqInput" });
    await expect.poll(() => waiting).toEqual([expect.stringContaining("pauseScheduler")]);
    await send(0, paused(true));
    await pausing;
    expect(await next(0)).toMatchObject(flushing);
    await send(0, flushed);
    await resuming;
    expect(await failureOf(client.releaseMemoryOccupation())).toMatchObject({ code: "refused", found: "is frozen by keep" });
    await expect.poll(async () => (await client.state()).engines[0]?.scheduler).toBe("frozen");
  });

  it("says of a failed operation what every engine said", async () => {
    const { connection, next, send } = await open(2);
    const client = createClient(connection);
    const call = failureOf(client.pauseScheduler());
    await Promise.all([next(0), next(1)]);
    await send(0, paused(true));
    await send(1, paused(false, "busy"));
    const failure = await call;
    expect(failure).toMatchObject({
      code: "operation_failed",
      engine: 1,
      replies: [{ engine: 0 }, { engine: 1, reply: { message: "busy" } }],
    });
    expect(failure.message).toContain("engine 1: busy");
  });

  it("fails what is pending, and what follows, with `closed`, and closes once", async () => {
    const { connection, next } = await open(1);
    const events = connection.events();
    const call = failureOf(connection.call(sleeping));
    await next(0);
    await Promise.all([connection.close("enough"), connection.close()]);
    expect(await call).toMatchObject({ code: "closed", operation: "isSleeping" });
    expect((await failureOf(connection.call(sleeping))).code).toBe("closed");
    expect(await connection.closed).toEqual({ reason: "enough" });
    expect((await events.next()).value).toEqual({ type: "closed", reason: { reason: "enough" } });
    expect((await events.next()).done).toBe(true);
  });
});
