import type { ControlOutput, ControlRequestInit } from "../messages.ts";
import type { ConnectionEvent } from "../transport/connection.ts";
import type { Call } from "./call.ts";

/** A reply that an engine still owes to a call nobody waits for any more. */
interface Owed {
  readonly operation: string;
  readonly request: ControlRequestInit;
  /** When the call was given up, in milliseconds of `performance.now()`. */
  readonly since: number;
  /** The same moment for people. */
  readonly at: Date;
}

/** One engine's place for calls of one reply tag. */
interface Lane {
  /** The call that is out. */
  call?: Call | undefined;
  /** The reply owed to an abandoned call. */
  owed?: Owed | undefined;
  atOnce: boolean;
  /** Position of its request among all sent to the engine. */
  position: number;
  /** The furthest position that an at-once reply had acknowledged when the request was sent. */
  acknowledged: number;
}

interface EngineLanes {
  readonly lanes: Map<string, Lane>;
  /** The calls that wait, by reply tag, in order. */
  readonly waiting: Map<string, Set<Call>>;
  /** How many requests were sent to it. */
  position: number;
  /** The furthest of them that an at-once reply has acknowledged. */
  acknowledged: number;
}

/** What lanes need of the connection around them. */
export interface LaneOwner {
  /** Hands a call's messages to the socket; its lanes are taken. */
  send(call: Call): void;
  /** Reports what happened outside of calls. */
  report(event: ConnectionEvent): void;
}

/**
 * Attributes replies. A TokenSpeed reply carries neither a call id nor an engine index, and two of a kind may be answered
 * out of order; so per engine and reply tag one call is out at a time, later ones wait in order, and an abandoned call
 * keeps its lane until the reply it is owed has been swallowed or proved lost.
 *
 * A call takes the lanes of all its engines at once or waits: engines then see gated operations in one order, without
 * which they end themselves.
 */
export class LaneTable {
  readonly #engines = new Map<number, EngineLanes>();
  readonly #owner: LaneOwner;

  constructor(engines: readonly number[], owner: LaneOwner) {
    this.#owner = owner;
    for (const engine of engines) this.#engines.set(engine, { lanes: new Map(), waiting: new Map(), position: 0, acknowledged: 0 });
  }

  /** Queues a call behind those of its kind; sends it before returning when its lanes are free. */
  enter(call: Call): void {
    const tag = call.operation.reply;
    for (const engine of call.engines) {
      const waiting = this.#engines.get(engine)?.waiting;
      const calls = waiting?.get(tag);
      if (calls === undefined) waiting?.set(tag, new Set([call]));
      else calls.add(call);
    }
    this.#advance(call);
  }

  /** Matches a reply with the lane it belongs to. */
  receive(engine: number, reply: ControlOutput): void {
    const tag = reply.$tag;
    const lanes = this.#engines.get(engine);
    const lane = lanes?.lanes.get(tag);
    if (lanes === undefined || lane === undefined || (lane.call === undefined && lane.owed === undefined)) {
      this.#owner.report({ type: "unexpected_reply", engine, tag });
      return;
    }
    const { call, owed } = lane;
    lane.call = undefined;
    lane.owed = undefined;
    if (owed !== undefined) {
      const { request, since } = owed;
      this.#owner.report({ type: "late_reply", engine, tag, lateMs: performance.now() - since, request, reply });
    }
    call?.answer(engine, reply);
    if (lane.atOnce) this.#proveLost(engine, lanes, lane);
    this.#freed(engine, tag);
  }

  /** Frees what an abandoned call has not sent and keeps the lanes of what it has. */
  abandon(call: Call): void {
    const tag = call.operation.reply;
    if (call.outgoing.size === 0) {
      this.#leaveQueue(call);
      for (const engine of call.engines) this.#freed(engine, tag);
      return;
    }
    // half of a gated operation would leave its engines waiting for each other: it is withdrawn whole or not at all
    const messages = [...call.outgoing.values()];
    const withdraw = call.operation.answers !== "gated" || messages.every((message) => message.state === "queued");
    const owed: Owed = { operation: call.operation.name, request: call.request, since: performance.now(), at: new Date() };
    for (const engine of call.missing) {
      const lane = this.#engines.get(engine)?.lanes.get(tag);
      if (lane?.call !== call) continue;
      lane.call = undefined;
      const message = call.outgoing.get(engine);
      if (withdraw && message?.state === "queued") message.state = "cancelled";
      else lane.owed = owed;
    }
    for (const engine of call.engines) this.#freed(engine, tag);
  }

  /** Frees one engine's lane after its request could not be handed over: no reply is owed for it. */
  unsent(call: Call, engine: number): void {
    const lane = this.#engines.get(engine)?.lanes.get(call.operation.reply);
    if (lane?.call === call) lane.call = undefined;
  }

  /** Why a call still waits: the reply owed in one of its lanes, if that is the reason. */
  owedBefore(call: Call): (Owed & { readonly engine: number }) | undefined {
    for (const engine of call.engines) {
      const owed = this.#engines.get(engine)?.lanes.get(call.operation.reply)?.owed;
      if (owed !== undefined) return { ...owed, engine };
    }
    return undefined;
  }

  /** Drops an engine's lanes and returns the calls that still needed it, which their owner fails. */
  engineDied(engine: number): readonly Call[] {
    const gone = this.#engines.get(engine);
    if (gone === undefined) return [];
    const needed = callsOf(gone);
    gone.lanes.clear();
    // all of them, before the first is failed: the failure of one must not send the next
    for (const call of needed) if (call.outgoing.size === 0) this.#leaveQueue(call);
    return [...needed];
  }

  /** Forgets all calls under way and returns them; their owner fails them because the connection closes. */
  close(): readonly Call[] {
    const calls = new Set<Call>();
    for (const engine of this.#engines.values()) {
      for (const call of callsOf(engine)) calls.add(call);
      engine.lanes.clear();
      engine.waiting.clear();
    }
    return [...calls];
  }

  #leaveQueue(call: Call): void {
    for (const engine of call.engines) this.#engines.get(engine)?.waiting.get(call.operation.reply)?.delete(call);
  }

  /** Looks whether the first call that waits for a lane can be sent. */
  #freed(engine: number, tag: string): void {
    const first = this.#first(engine, tag);
    if (first !== undefined) this.#advance(first);
  }

  /** Sends a waiting call if its lanes are free and nobody before it waits for one of them. */
  #advance(call: Call): void {
    const tag = call.operation.reply;
    if (!call.engines.every((engine) => this.#first(engine, tag) === call) || !this.#free(call)) return;
    this.#leaveQueue(call);
    for (const engine of call.engines) this.#take(engine, call);
    this.#owner.send(call);
  }

  #first(engine: number, tag: string): Call | undefined {
    return this.#engines.get(engine)?.waiting.get(tag)?.values().next().value;
  }

  /** Whether no engine of a call has another one of its kind out, or owes a reply to one. */
  #free(call: Call): boolean {
    for (const engine of call.engines) {
      const lane = this.#engines.get(engine)?.lanes.get(call.operation.reply);
      if (lane !== undefined && (lane.call !== undefined || lane.owed !== undefined)) return false;
    }
    return true;
  }

  #take(engine: number, call: Call): void {
    const lanes = this.#engines.get(engine);
    if (lanes === undefined) return;
    lanes.position++;
    lanes.lanes.set(call.operation.reply, {
      call,
      owed: undefined,
      atOnce: call.operation.answers === "at once",
      position: lanes.position,
      acknowledged: lanes.acknowledged,
    });
  }

  /**
   * The fence. An engine sends the replies of one round in an order of its own (a flush after the queries, whatever came
   * first), but a round's replies before those of the next. A request sent after some reply was read belongs to a later
   * round than everything sent before the request of that reply. So its own reply proves that what is still owed from
   * there was lost.
   */
  #proveLost(engine: number, lanes: EngineLanes, answered: Lane): void {
    lanes.acknowledged = Math.max(lanes.acknowledged, answered.position);
    for (const [tag, lane] of lanes.lanes) {
      if (!lane.atOnce || lane.owed === undefined || lane.position >= answered.acknowledged) continue;
      const { request } = lane.owed;
      lane.owed = undefined;
      this.#owner.report({ type: "lost_reply", engine, tag, request });
      this.#freed(engine, tag);
    }
  }
}

/** The calls of an engine: those that wait, then those that are out. */
function callsOf({ waiting, lanes }: EngineLanes): Set<Call> {
  const calls = new Set<Call>();
  for (const queue of waiting.values()) for (const call of queue) calls.add(call);
  for (const { call } of lanes.values()) if (call !== undefined) calls.add(call);
  return calls;
}
