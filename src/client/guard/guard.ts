import type { Operation } from "../../../generated/tokenspeed/operations.ts";
import type { ControlRequestInit } from "../../messages.ts";
import type { Connection, ConnectionEvent, EngineReply } from "../../transport/connection.ts";
import { EngineWireError, isEngineWireError } from "../../wire/errors.ts";
import type { ClientCall } from "../interceptors.ts";
import type { CallGuard } from "./call-guard.ts";
import { conditions } from "./conditions.ts";
import { afterReply, afterSend, afterSilence, type EngineState, freshState, settled, unknownState } from "./engine-state.ts";
import { Exclusion, type LeftLine } from "./exclusion.ts";
import { refuseValues } from "./refused-values.ts";
import { type GuardRule, guardTable } from "./table.ts";

/** The table by operation: most have few rules, and the queries none. */
const rulesOf = /* @__PURE__ */ byOperation(guardTable);

/**
 * Keeps calls from leaving that are illegal in the state their engines are known to be in, and lets one state-changing
 * call be under way at a time. It learns from every reply its client sees, late ones included, and from the two queries.
 */
export class Guard implements CallGuard {
  readonly #connection: Connection;
  readonly #engines: readonly number[];
  readonly #states = new Map<number, EngineState>();
  readonly #exclusion = new Exclusion();
  #closed = false;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#engines = connection.engines.map(({ index }) => index);
    for (const engine of this.#engines) this.#states.set(engine, freshState(engine));
    void this.#learn(connection.events());
  }

  /** What is known of each engine, in index order. */
  get states(): readonly EngineState[] {
    return [...this.#states.values()];
  }

  /** What is known of one engine. */
  state(engine: number): EngineState {
    return this.#states.get(engine) ?? unknownState(engine);
  }

  /** Checks a call, waits for its turn, sends it and learns from what becomes of it. */
  async call(call: ClientCall, timeoutMs: number, guarded: boolean): Promise<readonly EngineReply[]> {
    const { operation, request, options } = call;
    if (!guarded) return this.#send(call, timeoutMs);
    refuseValues(operation, request);
    if (!excludes(operation) || this.#mayPass(operation)) {
      this.#refuse(call);
      return this.#send(call, timeoutMs);
    }
    const start = performance.now();
    const name = options.caller === undefined ? operation.name : `${operation.name} of ${options.caller}`;
    const leave = this.#exclusion.enterAtOnce(name) ?? (await this.#turn(name, call, timeoutMs));
    try {
      // only now: the calls before it change what is legal; on a closed connection, that is what the call must say
      if (!this.#closed) this.#refuse(call);
      return await this.#send(call, Math.max(1, Math.ceil(timeoutMs - (performance.now() - start))));
    } finally {
      leave();
    }
  }

  async #turn(name: string, { operation, options }: ClientCall, timeoutMs: number): Promise<() => void> {
    const { signal, onWait } = options;
    const details = { operation: operation.name, stage: "queue" };
    if (signal?.aborted)
      throw new EngineWireError("aborted", `${operation.name} was aborted before anything was sent`, { ...details, cause: signal.reason });
    try {
      if (onWait !== undefined) this.#exclusion.tellHolder(onWait);
      return await this.#exclusion.enterInLine(name, timeoutMs, signal);
    } catch (why) {
      const left = why as LeftLine;
      throw left.expired
        ? new EngineWireError(
            "timeout",
            `${operation.name} was not sent within ${timeoutMs} ms: ${left.holder} is still under way`,
            details,
          )
        : new EngineWireError("aborted", `${operation.name} was aborted before anything was sent`, { ...details, cause: left.reason });
    }
  }

  /** A resume is what ends a pause or release that does not drain, so it must not wait for it. */
  #mayPass(operation: Operation): boolean {
    return operation.endsDrain && this.states.some(({ draining }) => draining !== undefined);
  }

  #refuse({ operation, request, options }: ClientCall): void {
    for (const rule of rulesOf.get(operation.name) ?? []) {
      for (const state of this.#states.values()) {
        if (options.engines !== undefined && !options.engines.includes(state.engine)) continue;
        if (!conditions[rule.when]({ state, request })) continue;
        const message = `${operation.name} was not sent: engine ${state.engine} ${rule.when}, and ${rule.because}. Instead: ${rule.remedy}`;
        throw new EngineWireError("refused", `${message} (or pass { guard: false })`, {
          operation: operation.name,
          engine: state.engine,
          found: rule.when,
        });
      }
    }
  }

  async #send({ request, options }: ClientCall, timeoutMs: number): Promise<readonly EngineReply[]> {
    const { signal, engines: chosen, release, onReply } = options;
    const engines = chosen ?? this.#engines;
    const marked = this.#mark(engines, request);
    try {
      const replies = await this.#connection.call(request, { signal, timeoutMs, engines: chosen, release, onReply });
      for (const { engine, reply } of replies) this.#update(engine, (state) => afterReply(state, request, reply));
      return replies;
    } catch (error) {
      this.#learnFromFailure(request, engines, marked, error);
      throw error;
    }
  }

  /** Notes what a request does while it is out, and returns the engines for which it was noted. */
  #mark(engines: readonly number[], request: ControlRequestInit): readonly number[] {
    const marked: number[] = [];
    for (const engine of engines) {
      const state = this.#states.get(engine);
      // one that drains already is not this call's to take back
      if (state === undefined || state.draining !== undefined) continue;
      const noted = afterSend(state, request);
      if (noted === state) continue;
      this.#states.set(engine, noted);
      marked.push(engine);
    }
    return marked;
  }

  #learnFromFailure(request: ControlRequestInit, engines: readonly number[], marked: readonly number[], error: unknown): void {
    const known = isEngineWireError(error) ? error : undefined;
    if (known?.code === "closed") this.#closed = true;
    const replies = (known?.replies ?? []) as readonly EngineReply[];
    for (const { engine, reply } of replies) this.#update(engine, (state) => afterReply(state, request, reply));
    const sent = known?.stage === "reply" || known?.stage === "send";
    for (const engine of engines) {
      if (replies.some((reply) => reply.engine === engine)) continue;
      if (sent) this.#update(engine, (state) => afterSilence(state, request));
      else if (marked.includes(engine)) this.#update(engine, (state) => settled(state, state.scheduler));
    }
  }

  async #learn(events: AsyncIterable<ConnectionEvent>): Promise<void> {
    for await (const event of events) {
      if (event.type === "late_reply") this.#update(event.engine, (state) => afterReply(state, event.request, event.reply));
      else if (event.type === "lost_reply") this.#update(event.engine, (state) => afterSilence(state, event.request));
      else if (event.type === "engine_dead") this.#states.delete(event.engine);
      else if (event.type === "events_dropped") for (const { engine } of this.states) this.#states.set(engine, unknownState(engine));
    }
  }

  #update(engine: number, change: (state: EngineState) => EngineState): void {
    const state = this.#states.get(engine);
    if (state === undefined) return;
    const changed = change(state);
    if (changed !== state) this.#states.set(engine, changed);
  }
}

const exclusive: readonly string[] = ["admission", "memory", "weights"] satisfies Operation["effect"][];

function excludes(operation: Operation): boolean {
  return exclusive.includes(operation.effect);
}

function byOperation(table: readonly GuardRule[]): ReadonlyMap<string, readonly GuardRule[]> {
  const rules = new Map<string, GuardRule[]>();
  for (const rule of table) {
    for (const operation of rule.operations) {
      const known = rules.get(operation);
      if (known === undefined) rules.set(operation, [rule]);
      else known.push(rule);
    }
  }
  return rules;
}
