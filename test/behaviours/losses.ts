import { expect } from "vitest";
import type { ConnectionEvent } from "../../src/index.ts";
import { flushed, isSleeping, request, sleeping } from "./messages.ts";
import { eventually, failureOf, read } from "./outcomes.ts";
import type { Behaviours, Rig } from "./rig.ts";

async function streamOn({ connection, nextAdd }: Rig, engine: number) {
  const stream = connection.generate(request, { engine });
  const { rid } = await nextAdd(engine);
  return { stream, rid: rid as string };
}

/** What a connection does when engines end or send garbage, and when it is closed itself. */
export const losses: Behaviours = {
  async "fails the calls of an engine that ends, and tells"(open) {
    const { connection, next, end } = await open(2);
    const events = connection.events();
    const call = failureOf(connection.call(sleeping));
    await Promise.all([next(0), next(1)]);
    await end(1);
    expect(await call).toMatchObject({ code: "engine_dead", engine: 1, operation: "isSleeping" });
    expect((await events.next()).value).toMatchObject({ type: "engine_dead", engine: 1, error: { code: "engine_dead" } });
    await eventually(() => expect(connection.engines.map(({ state }) => state)).toEqual(["up", "dead"]));
    expect((await failureOf(connection.call(sleeping, { engines: [1] }))).code).toBe("engine_dead");
  },

  async "ends exactly the streams of an engine that ends, behind what they had, and sends it no more"(open) {
    const rig = await open(2);
    const { connection, sendBatch, end } = rig;
    const dying = await Promise.all([streamOn(rig, 1), streamOn(rig, 1), streamOn(rig, 1)]);
    const living = await streamOn(rig, 0);
    await sendBatch(
      1,
      dying.map(({ rid }) => ({ rid, ids: [5] })),
    );
    await end(1);
    for (const { stream } of dying) expect(await read(stream)).toMatchObject({ ids: [5], error: { code: "engine_dead", engine: 1 } });
    await sendBatch(0, [{ rid: living.rid, ids: [6], finish: "stop" }]);
    expect(await read(living.stream)).toMatchObject({ ids: [6], last: { finishReason: "stop" } });
    expect((await failureOf(connection.generate(request, { engine: 1 }).next())).code).toBe("engine_dead");
    // the routing leaves it out
    for (let times = 0; times < 2; times++) {
      const stream = connection.generate({ ...request, inputIds: [times] });
      expect(await rig.nextAdd(0)).toMatchObject({ inputIds: [times] });
      await stream.return();
    }
  },

  async "survives garbage of an engine, counts it and tells"(open) {
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
    await eventually(() => expect(connection.counts).toMatchObject({ malformedMessages: 1, unknownTags: 1, unexpectedReplies: 1 }));
  },

  async "counts output that nobody asked for, tells of it, and gives everybody else theirs"(open) {
    const rig = await open(1);
    const events = rig.connection.events();
    const { stream, rid } = await streamOn(rig, 0);
    await rig.sendBatch(0, [
      { rid: "x", ids: [1] },
      { rid, ids: [5], finish: "stop" },
    ]);
    expect((await read(stream)).ids).toEqual([5]);
    expect((await events.next()).value).toEqual({ type: "unexpected_output", engine: 0, rid: "x" });
    expect(rig.connection.counts.unexpectedOutputs).toBe(1);
  },

  async "ends the streams that output may have been for when it cannot be read, aborts them, and no others"(open) {
    const rig = await open(1);
    const { sendBatch, nextAbort } = rig;
    const [hurt, other] = [await streamOn(rig, 0), await streamOn(rig, 0)];
    await sendBatch(0, [{ rid: hurt.rid, ids: [5] }], { promptTokens: [1, 2, 3] });
    expect(await read(hurt.stream)).toMatchObject({ ids: [], error: { code: "malformed", engine: 0 } });
    expect(await nextAbort(0)).toBe(hurt.rid);
    await sendBatch(0, [{ rid: other.rid, ids: [7], finish: "stop" }]);
    expect((await read(other.stream)).ids).toEqual([7]);
    await eventually(() => expect(rig.connection.counts).toMatchObject({ malformedMessages: 1, unexpectedOutputs: 0 }));
  },

  async "fails calls that are pending, and those that follow, with `closed`, and closes once"(open) {
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
  },

  async "ends streams with `closed` when it is closed, and has their requests aborted"(open) {
    const rig = await open(1);
    const { connection, sendBatch, nextAbort } = rig;
    const streams = [await streamOn(rig, 0), await streamOn(rig, 0), await streamOn(rig, 0)];
    await sendBatch(
      0,
      streams.map(({ rid }) => ({ rid, ids: [5] })),
    );
    for (const { stream } of streams) expect((await stream.next()).value?.outputIds).toEqual([5]);
    const ended = Promise.all(streams.map(({ stream }) => read(stream)));
    await connection.close("done");
    for (const result of await ended) expect(result).toMatchObject({ ids: [], error: { code: "closed" } });
    expect((await failureOf(connection.generate(request).next())).code).toBe("closed");
    const aborted = [await nextAbort(0), await nextAbort(0), await nextAbort(0)];
    expect(aborted.sort()).toEqual(streams.map(({ rid }) => rid).sort());
  },
};
