import { expect } from "vitest";
import { createClient } from "../../src/index.ts";
import { flushed, flushing, isSleeping, paused, sleeping } from "./messages.ts";
import { eventually, failureOf } from "./outcomes.ts";
import type { Behaviours } from "./rig.ts";

const badCalls: readonly [what: string, request: object, options: object, code: string][] = [
  ["an unknown tag", { $tag: "LaunchReqInput" }, {}, "unknown_tag"],
  ["a misspelt field", { ...sleeping, isSleping: true }, {}, "unknown_field"],
  ["a field of another type", { $tag: "UpdateWeightFromDiskReqInput", modelPath: 7 }, {}, "invalid_value"],
  ["an unknown option", sleeping, { timeoutMS: 5 }, "invalid_argument"],
  ["a timeout of 0", sleeping, { timeoutMs: 0 }, "invalid_argument"],
  ["no engines", sleeping, { engines: [] }, "invalid_argument"],
  ["an unknown release", sleeping, { release: "9.9.9" }, "invalid_argument"],
];

/** What a connection does with operations. */
export const calls: Behaviours = {
  async "tells its engines"(open) {
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
  },

  async "carries requests unchanged and gives replies in engine order"(open) {
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
  },

  async "tells each reply as it arrives"(open) {
    const { connection, next, send } = await open(2);
    const heard: number[] = [];
    const call = connection.call(sleeping, { onReply: ({ engine }) => heard.push(engine) });
    await Promise.all([next(0), next(1)]);
    await send(1, isSleeping(true));
    await eventually(() => expect(heard).toEqual([1]));
    await send(0, isSleeping(false));
    expect((await call).map(({ engine }) => engine)).toEqual([0, 1]);
    expect(heard).toEqual([1, 0]);
  },

  async "asks only the engines it is told"(open) {
    const { connection, next, send } = await open(2);
    const call = connection.call(sleeping, { engines: [1] });
    await next(1);
    await send(1, isSleeping(true));
    expect(await call).toMatchObject([{ engine: 1, reply: { isSleeping: true } }]);
    expect((await failureOf(connection.call(sleeping, { engines: [7] }))).code).toBe("invalid_argument");
  },

  async "refuses a part of the group for an operation that needs all of it"(open) {
    const { connection } = await open(2);
    const request = { $tag: "UpdateWeightFromDiskReqInput", modelPath: "/m" } as const;
    const failure = await failureOf(createClient(connection).control(request, { engines: [0], guard: false }));
    expect(failure).toMatchObject({ code: "invalid_argument", path: "engines" });
  },

  ...Object.fromEntries(
    badCalls.map(([what, request, options, code]) => [
      `refuses a call with ${what}, and sends nothing`,
      async (open) => {
        const { connection, next, send } = await open(1);
        expect((await failureOf(connection.call(request as never, options as never))).code).toBe(code);
        const call = connection.call(flushing);
        expect(await next(0)).toMatchObject(flushing);
        await send(0, flushed);
        await call;
      },
    ]),
  ),

  async "says which engines did not answer in time, and what the others said"(open) {
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
  },

  async "gives a repeated call its own answer, not that of the call given up before it"(open) {
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
  },

  async "rejects a call at once when its signal aborts, and sends nothing for one that is aborted already"(open) {
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
  },

  async "answers many calls of several kinds, each with its own reply"(open) {
    const { connection, next, send } = await open(1);
    const all = Array.from({ length: 30 }, (_, index) => connection.call(index % 2 === 0 ? sleeping : flushing));
    for (let index = 0; index < 30; index++) {
      const { $tag } = await next(0);
      await send(0, $tag === "IsSleepingReqInput" ? isSleeping(true) : flushed);
    }
    for (const [index, replies] of (await Promise.all(all)).entries())
      expect(replies[0]?.reply.$tag).toBe(index % 2 === 0 ? "IsSleepingReqOutput" : "FlushCacheReqOutput");
  },

  async "has a guard that knows what replies have said, and lets one state-changing call out at a time"(open) {
    const { connection, next, send } = await open(1);
    const client = createClient(connection);
    const pausing = client.pauseScheduler({ mode: "keep" });
    const waiting: string[] = [];
    const resuming = client.flushCache({}, { onWait: (holder) => waiting.push(holder) });
    expect(await next(0)).toMatchObject({ $tag: "PauseSchedulerReqInput" });
    await eventually(() => expect(waiting).toEqual([expect.stringContaining("pauseScheduler")]));
    await send(0, paused(true));
    await pausing;
    expect(await next(0)).toMatchObject(flushing);
    await send(0, flushed);
    await resuming;
    expect(await failureOf(client.releaseMemoryOccupation())).toMatchObject({ code: "refused", found: "is frozen by keep" });
    await eventually(async () => expect((await client.state()).engines[0]?.scheduler).toBe("frozen"));
  },

  async "says of a failed operation what every engine said"(open) {
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
  },
};
