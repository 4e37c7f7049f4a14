import { describe, expect, it } from "vitest";
import { type Operation, type OperationName, operations } from "../../../generated/tokenspeed/operations.ts";
import type { ControlOutput, ControlRequestInit } from "../../../src/messages.ts";
import { Call } from "../../../src/node/call.ts";
import { LaneTable } from "../../../src/node/lanes.ts";
import type { Outgoing } from "../../../src/node/send-queue.ts";
import type { ConnectionEvent } from "../../../src/transport/connection.ts";

/** Lanes over an owner that writes down what would be sent. */
function lanesOf(engines: readonly number[]) {
  const sent: Call[] = [];
  const events: ConnectionEvent[] = [];
  let state: Outgoing["state"] = "sent";
  const lanes = new LaneTable(engines, {
    send(call) {
      sent.push(call);
      for (const engine of call.engines) call.outgoing.set(engine, { frames: [], failed: () => {}, state });
    },
    report: (event) => events.push(event),
  });
  return {
    lanes,
    sent,
    events,
    /** From now on, messages stay in the send queue. */
    stall() {
      state = "queued";
    },
    enter(name: OperationName, to: readonly number[] = engines): Call {
      const call = new Call(operations[name] as Operation, to, { $tag: operations[name].request } as ControlRequestInit, new Uint8Array());
      call.result.catch(() => {});
      lanes.enter(call);
      return call;
    },
    giveUp(call: Call) {
      call.fail("timeout", "gave up");
      lanes.abandon(call);
    },
    reply(engine: number, name: OperationName, fields: object = {}) {
      lanes.receive(engine, { $tag: operations[name].reply, rid: null, httpWorkerIpc: null, ...fields } as ControlOutput);
    },
  };
}

const answersOf = async (call: Call) => (await call.result).map(({ engine, reply }) => [engine, reply]);

describe("lanes", () => {
  it("let one call of a kind out per engine and keep the others in order", () => {
    const { enter, sent, reply } = lanesOf([0]);
    const calls = [enter("isSleeping"), enter("isSleeping"), enter("isSleeping")];
    expect(sent).toEqual([calls[0]]);
    reply(0, "isSleeping", { isSleeping: true });
    expect(sent).toEqual([calls[0], calls[1]]);
    reply(0, "isSleeping", { isSleeping: false });
    expect(sent).toEqual(calls);
  });

  it("let calls of different kinds pass each other", () => {
    const { enter, sent } = lanesOf([0]);
    const pause = enter("pauseScheduler");
    const resume = enter("resumeScheduler");
    expect(sent).toEqual([pause, resume]);
  });

  it("give replies in engine order, whatever order they came in", async () => {
    const { enter, reply } = lanesOf([0, 1, 2]);
    const call = enter("isSleeping");
    for (const engine of [2, 0, 1]) reply(engine, "isSleeping", { isSleeping: engine === 1 });
    expect((await answersOf(call)).map(([engine, answer]) => [engine, (answer as { isSleeping: boolean }).isSleeping])).toEqual([
      [0, false],
      [1, true],
      [2, false],
    ]);
  });

  it("swallow the reply owed to an abandoned call before the next one is sent", async () => {
    const { enter, giveUp, reply, sent, events } = lanesOf([0]);
    const first = enter("pauseScheduler");
    giveUp(first);
    const second = enter("pauseScheduler");
    expect(sent).toEqual([first]);
    reply(0, "pauseScheduler", { success: false, message: "of the first" });
    expect(sent).toEqual([first, second]);
    expect(events.map(({ type }) => type)).toEqual(["late_reply"]);
    reply(0, "pauseScheduler", { success: true, message: "of the second" });
    expect(await answersOf(second)).toMatchObject([[0, { message: "of the second" }]]);
  });

  it("keep only the lanes of engines that still owe a reply", () => {
    const { enter, giveUp, reply, sent } = lanesOf([0, 1]);
    const first = enter("isSleeping");
    reply(0, "isSleeping");
    giveUp(first);
    const onZero = enter("isSleeping", [0]);
    const onOne = enter("isSleeping", [1]);
    expect(sent).toEqual([first, onZero]);
    reply(1, "isSleeping");
    expect(sent).toEqual([first, onZero, onOne]);
  });

  it("take the lanes of all engines of a call at once, and let nobody overtake on a shared engine", () => {
    const { enter, sent, reply } = lanesOf([0, 1]);
    const onZero = enter("isSleeping", [0]);
    const both = enter("isSleeping");
    const onOne = enter("isSleeping", [1]);
    expect(sent).toEqual([onZero]);
    reply(0, "isSleeping");
    expect(sent).toEqual([onZero, both]);
    reply(1, "isSleeping");
    expect(sent).toEqual([onZero, both, onOne]);
  });

  it("forget a call that gives up in the queue", () => {
    const { enter, giveUp, sent, reply, events } = lanesOf([0]);
    const first = enter("isSleeping");
    const second = enter("isSleeping");
    const third = enter("isSleeping");
    giveUp(second);
    reply(0, "isSleeping");
    expect(sent).toEqual([first, third]);
    expect(events).toEqual([]);
  });

  it("report a reply that nobody waits for, and a reply of a kind never called", () => {
    const { enter, reply, events } = lanesOf([0]);
    reply(0, "flushCache");
    enter("isSleeping");
    reply(0, "isSleeping");
    reply(0, "isSleeping");
    expect(events).toEqual([
      { type: "unexpected_reply", engine: 0, tag: "FlushCacheReqOutput" },
      { type: "unexpected_reply", engine: 0, tag: "IsSleepingReqOutput" },
    ]);
  });

  it("withdraw what the socket has not been given, and owe nothing for it", () => {
    const { enter, giveUp, sent, stall } = lanesOf([0, 1]);
    stall();
    const first = enter("isSleeping");
    giveUp(first);
    expect([...first.outgoing.values()].map(({ state }) => state)).toEqual(["cancelled", "cancelled"]);
    const second = enter("isSleeping");
    expect(sent).toEqual([first, second]);
  });

  it("never withdraw half of a gated operation", () => {
    const { enter, giveUp, sent } = lanesOf([0, 1]);
    const first = enter("updateWeightFromDisk");
    const [, second] = [...first.outgoing.values()];
    if (second !== undefined) second.state = "queued";
    giveUp(first);
    expect([...first.outgoing.values()].map(({ state }) => state)).toEqual(["sent", "queued"]);
    enter("updateWeightFromDisk");
    expect(sent).toEqual([first]);
  });

  it("give back the calls that a dead engine was needed for, and only those", () => {
    const { lanes, enter, reply } = lanesOf([0, 1]);
    const answered = enter("isSleeping");
    reply(1, "isSleeping");
    const out = enter("flushCache");
    const waiting = enter("flushCache", [1]);
    const other = enter("getInternalState", [0]);
    const needed = lanes.engineDied(1);
    expect(new Set(needed)).toEqual(new Set([out, waiting]));
    expect(needed).not.toContain(answered);
    expect(needed).not.toContain(other);
  });
});

describe("the fence", () => {
  it("frees the lane of a lost reply once a request of a later round is answered", () => {
    const { enter, giveUp, reply, sent, events } = lanesOf([0]);
    giveUp(enter("isSleeping"));
    const blocked = enter("isSleeping");
    enter("isSchedulerPaused");
    reply(0, "isSchedulerPaused");
    expect(sent).not.toContain(blocked);
    enter("isSchedulerPaused");
    reply(0, "isSchedulerPaused");
    expect(events).toEqual([{ type: "lost_reply", engine: 0, tag: "IsSleepingReqOutput", request: { $tag: "IsSleepingReqInput" } }]);
    expect(sent).toContain(blocked);
  });

  it("does not take a flush for lost that the engine answers last in its round", async () => {
    const { enter, giveUp, reply, events } = lanesOf([0]);
    giveUp(enter("flushCache"));
    const next = enter("flushCache");
    // sent before any reply came: all three may be of one round, and a round's flush is answered after its queries
    enter("isSchedulerPaused");
    enter("getInternalState");
    reply(0, "isSchedulerPaused");
    reply(0, "getInternalState", { internalState: {} });
    reply(0, "flushCache", { success: false });
    reply(0, "flushCache", { success: true });
    expect(events.map(({ type }) => type)).toEqual(["late_reply"]);
    expect(await answersOf(next)).toMatchObject([[0, { success: true }]]);
  });

  it("never frees the lane of an operation that waits for a drain", () => {
    const { enter, giveUp, reply, events } = lanesOf([0]);
    giveUp(enter("pauseScheduler"));
    for (let round = 0; round < 5; round++) {
      enter("isSleeping");
      reply(0, "isSleeping");
    }
    expect(events).toEqual([]);
  });
});
