import { type Operation, operations } from "../../generated/tokenspeed/operations.ts";
import {
  type BatchTokenIDOutSlim,
  type ControlOutput,
  type ControlReplySlim,
  type ControlRequestInit,
  decodeControlOutput,
  encodeControlRequest,
  peekTag,
  type ReplyOf,
  type RequestTag,
} from "../messages.ts";
import { AbortListeners } from "../transport/abort-listeners.ts";
import { unsupportedBecause } from "../transport/capabilities.ts";
import type { CallOptions, CloseReason, Connection, ConnectionEvent, EngineInfo, EngineReply } from "../transport/connection.ts";
import { Deadlines } from "../transport/deadlines.ts";
import { EventCounter } from "../transport/event-counter.ts";
import { EventStream } from "../transport/event-stream.ts";
import type { GenerateOptions, GenerateRequest, OutputStream } from "../transport/generation.ts";
import { checkCallOptions } from "../transport/timeouts.ts";
import { asEngineWireError, EngineWireError, isEngineWireError } from "../wire/errors.ts";
import type { ResolvedBindOptions } from "./bind-options.ts";
import { Call } from "./call.ts";
import { EngineTable, payloadFor } from "./engine-table.ts";
import { Generations } from "./generations.ts";
import { engineOf, type Registered } from "./handshake.ts";
import { LaneTable } from "./lanes.ts";
import type { EngineSockets } from "./sockets.ts";
import { socketErrorCode } from "./zeromq.ts";

const sentinel = "ENGINE_CORE_DEAD";
const control = Uint8Array.of(0x02);
const probe = operations.isSchedulerPaused;
const outputBatch = "BatchTokenIDOutSlim" satisfies BatchTokenIDOutSlim["$tag"];
const slimReply = "ControlReplySlim" satisfies ControlReplySlim["$tag"];

/** Whether a message is the raw frame with which an engine says that it ends. */
export function isDeathSentinel(frames: readonly Uint8Array[]): boolean {
  const frame = frames[0];
  if (frames.length !== 1 || frame?.length !== sentinel.length) return false;
  for (let index = 0; index < sentinel.length; index++) if (frame[index] !== sentinel.charCodeAt(index)) return false;
  return true;
}

/** Whether a message begins as output does: reading the tag of every reply twice would cost as much as reading it. */
function mayBeOutput(frame: Uint8Array): boolean {
  const at = ((frame[0] as number) & 0xf0) === 0x90 ? 1 : 3;
  return frame[at] === (0xa0 | outputBatch.length) && frame[at + 1] === outputBatch.charCodeAt(0);
}

/** The connection to engines that dialled in over ZeroMQ. */
export class Frontend implements Connection {
  readonly closed: Promise<CloseReason>;
  readonly #sockets: EngineSockets;
  readonly #engines: EngineTable;
  readonly #lanes: LaneTable;
  readonly #generations: Generations;
  readonly #operations = new Map<string, Operation>();
  readonly #events: EventStream<ConnectionEvent>;
  readonly #counter = new EventCounter();
  readonly #deadlines = new Deadlines();
  readonly #aborts = new AbortListeners();
  #closing: Promise<void> | undefined;
  #closeReason: CloseReason | undefined;
  #resolveClosed!: (reason: CloseReason) => void;

  constructor(
    sockets: EngineSockets,
    registered: ReadonlyMap<number, Registered>,
    options: Pick<ResolvedBindOptions, "eventLimit" | "release" | "routing">,
  ) {
    this.#sockets = sockets;
    this.#engines = new EngineTable(registered, options.release);
    for (const operation of Object.values<Operation>(operations)) this.#operations.set(operation.request, operation);
    this.#events = new EventStream<ConnectionEvent>(options.eventLimit, (count) => ({ type: "events_dropped", count }));
    this.#generations = new Generations(this.#engines, options.routing, this.#aborts, {
      send: ({ identity }, frames, failed) => sockets.sendInput([identity, ...frames], failed),
      refused: (engine, error) => this.#requestRefused(engine.index, error),
      report: (event) => this.#report(event),
    });
    this.#lanes = new LaneTable(this.#engines.indices, { send: (call) => this.#send(call), report: (event) => this.#report(event) });
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    sockets.deliverTo({
      handshake: (frames) => this.#unexpected("handshake", frames, "an engine dials in, but engines handshake once: bind again for it"),
      input: (frames) => this.#unexpected("input", frames, "a message from a registered engine"),
      output: (engine, frames) => this.#receive(engine, frames),
      connected: () => {},
      lost: (engine) => this.#died(engine, "its connection ended"),
      failed: (error) => void this.#close({ reason: "a socket failed", error: asEngineWireError(error) }),
    });
  }

  get engines(): readonly EngineInfo[] {
    return [...this.#engines].map(({ index, registration, capabilities, death }) => {
      const load = this.#generations.load(index);
      const inFlight = this.#generations.inFlight(index);
      const state = death === undefined ? "up" : "dead";
      return { index, registration, capabilities, state, inFlight, ...(load !== undefined && { load }) };
    });
  }

  get counts(): EventCounter["counts"] {
    return this.#counter.counts;
  }

  async call<Tag extends RequestTag>(
    request: ControlRequestInit & { readonly $tag: Tag },
    options: CallOptions = {},
  ): Promise<readonly EngineReply<ReplyOf<Tag>>[]> {
    const operation = this.#operations.get((request as { $tag?: string } | null)?.$tag ?? "");
    if (operation === undefined)
      throw new EngineWireError("unknown_tag", "the request's $tag names no control operation", { path: "$tag" });
    checkCallOptions(options);
    const timeoutMs = options.timeoutMs ?? operation.timeoutMs;
    const engines = this.#engines.addressed(operation, options.engines);
    const payload = encodeControlRequest(request);
    this.#checkUsable(operation, engines, options.signal);
    this.#engines.checkFields(operation, request, engines, options.release);
    const call = new Call(operation, engines, request, payload, options);
    const deadline = this.#deadlines.add(timeoutMs, () => this.#expire(call, timeoutMs));
    const { signal } = options;
    const abort = (): void => this.#abandon(call, "aborted", `was aborted ${whatItMeans(call)}`, { cause: signal?.reason });
    const ignoreAbort = signal && this.#aborts.add(signal, abort);
    this.#lanes.enter(call);
    try {
      // a reply's tag is its lane's, so the tag of the request decides the type
      return (await call.result) as readonly EngineReply<ReplyOf<Tag>>[];
    } finally {
      this.#deadlines.remove(deadline);
      ignoreAbort?.();
    }
  }

  generate(request: GenerateRequest, options: GenerateOptions = {}): OutputStream {
    return this.#generations.start(request, options);
  }

  /**
   * Asks every engine a question without side effects: one that does not answer in time is taken for one without control,
   * and calls to it fail at once instead of at their deadline, until the answer comes after all. An engine that cannot be
   * asked is not: one of the second dialect has announced it, and one of an older release refuses every call anyway.
   */
  async probe(timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
    const asked = [...this.#engines].filter(({ capabilities }) => unsupportedBecause(capabilities, probe) === undefined);
    await Promise.all(
      asked.map(async (engine) => {
        try {
          await this.call({ $tag: probe.request }, { engines: [engine.index], timeoutMs, ...(signal !== undefined && { signal }) });
        } catch (error) {
          if (isEngineWireError(error) && error.code === "timeout") engine.capabilities = { ...engine.capabilities, control: false };
          else throw error;
        }
      }),
    );
  }

  events(): AsyncIterableIterator<ConnectionEvent> {
    return this.#events.read();
  }

  close(reason = "close was called"): Promise<void> {
    return this.#close({ reason });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Refuses a call that could not be answered. */
  #checkUsable(operation: Operation, engines: readonly number[], signal: AbortSignal | undefined): void {
    const details = { operation: operation.name, stage: "queue" };
    if (this.#closeReason !== undefined) {
      throw new EngineWireError("closed", `${operation.name}: the connection is closed (${this.#closeReason.reason})`, details);
    }
    if (signal?.aborted) {
      throw new EngineWireError("aborted", `${operation.name} was aborted before anything was sent`, { ...details, cause: signal.reason });
    }
    this.#engines.checkUsable(operation, engines);
  }

  #send(call: Call): void {
    call.sent();
    for (const index of call.engines) {
      const engine = this.#engines.get(index);
      if (engine === undefined) continue;
      const failed = (error: unknown): void => this.#sendFailed(call, index, error);
      call.outgoing.set(index, this.#sockets.sendInput([engine.identity, control, payloadFor(engine, call)], failed));
    }
  }

  #sendFailed(call: Call, engine: number, cause: unknown): void {
    const code = socketErrorCode(cause);
    if (code === "EHOSTUNREACH") {
      this.#died(engine, "it is not connected any more", cause);
    } else {
      this.#lanes.unsent(call, engine);
      const why = code === "EAGAIN" ? "it does not take any more messages" : String((cause as Error | null)?.message ?? cause);
      this.#abandon(call, "timeout", `could not be handed to engine ${engine}: ${why}`, { engine, cause, stage: "send" });
    }
  }

  /** What becomes of a generate request that a socket refused. */
  #requestRefused(engine: number, cause: unknown): EngineWireError {
    if (socketErrorCode(cause) === "EHOSTUNREACH") {
      this.#died(engine, "it is not connected any more", cause);
      return new EngineWireError("engine_dead", `the request was not sent: engine ${engine} is not connected any more`, { engine, cause });
    }
    const why = socketErrorCode(cause) === "EAGAIN" ? "it does not take any more messages" : asEngineWireError(cause).message;
    return new EngineWireError("timeout", `the request could not be handed to engine ${engine}: ${why}`, { engine, cause, stage: "send" });
  }

  #receive(engine: number, frames: readonly Uint8Array[]): void {
    if (isDeathSentinel(frames)) {
      this.#died(engine, "it shut down");
      return;
    }
    let reply: ControlOutput | undefined;
    try {
      const [frame] = frames;
      if (frame === undefined || frames.length !== 1) throw new EngineWireError("malformed", `expected one frame, got ${frames.length}`);
      if (mayBeOutput(frame) && peekTag(frame) === outputBatch) {
        this.#generations.receive(engine, frame);
        return;
      }
      const slim = this.#engines.get(engine)?.slim;
      reply = slim === undefined || peekTag(frame) !== slimReply ? decodeControlOutput(frame) : slim.decode(frame);
    } catch (error) {
      const failure = asEngineWireError(error);
      const tag = failure.code === "unknown_tag" && frames[0] !== undefined ? peekTag(frames[0]) : undefined;
      if (tag !== undefined) this.#report({ type: "unknown_tag", engine, tag });
      else this.#report({ type: "malformed_message", engine, error: failure });
      return;
    }
    if (reply === undefined) this.#report({ type: "unexpected_reply", engine, tag: slimReply });
    else this.#lanes.receive(engine, reply);
  }

  #expire(call: Call, timeoutMs: number): void {
    const owed = call.stage === "queue" ? this.#lanes.owedBefore(call) : undefined;
    if (owed === undefined) {
      this.#abandon(call, "timeout", `got no answer from ${enginesOf(call.missing)} within ${timeoutMs} ms ${whatItMeans(call)}`);
      return;
    }
    const since = `engine ${owed.engine} still owes the reply to a ${owed.operation} given up at ${owed.at.toISOString()}`;
    this.#abandon(call, "previous_call_pending", `was not sent within ${timeoutMs} ms: ${since}`, { engine: owed.engine });
  }

  #abandon(call: Call, ...failure: Parameters<Call["fail"]>): void {
    call.fail(...failure);
    this.#lanes.abandon(call);
  }

  #died(index: number, why: string, cause?: unknown): void {
    const engine = this.#engines.get(index);
    if (engine === undefined || engine.death !== undefined || this.#closeReason !== undefined) return;
    engine.death = new EngineWireError("engine_dead", `engine ${index}: ${why}`, { engine: index, ...(cause !== undefined && { cause }) });
    for (const call of this.#lanes.engineDied(index)) {
      this.#abandon(call, "engine_dead", `failed: engine ${index} is dead (${why}) ${whatItMeans(call)}`, {
        engine: index,
        cause: engine.death,
      });
    }
    this.#generations.engineDied(index, engine.death);
    this.#report({ type: "engine_dead", engine: index, error: engine.death });
  }

  #unexpected(socket: "handshake" | "input", frames: readonly Uint8Array[], detail: string): void {
    const engine = frames[0] === undefined ? -1 : engineOf(frames[0]);
    this.#report({ type: "unexpected_message", socket, detail, ...(engine >= 0 && { engine }) });
  }

  #report(event: ConnectionEvent): void {
    const engine = event.type === "late_reply" ? this.#engines.get(event.engine) : undefined;
    if (engine !== undefined) engine.capabilities = { ...engine.capabilities, control: true };
    this.#counter.add(event);
    this.#events.emit(event);
  }

  #close(reason: CloseReason): Promise<void> {
    this.#closing ??= this.#shutDown(reason);
    return this.#closing;
  }

  async #shutDown(reason: CloseReason): Promise<void> {
    this.#closeReason = reason;
    const details = { ...(reason.error !== undefined && { cause: reason.error }) };
    for (const call of this.#lanes.close())
      call.fail("closed", `ended because the connection closed (${reason.reason}) ${whatItMeans(call)}`, details);
    this.#deadlines.clear();
    this.#generations.close(new EngineWireError("closed", `the connection is closed (${reason.reason})`, details));
    await this.#sockets.close();
    this.#report({ type: "closed", reason });
    this.#events.end();
    this.#resolveClosed(reason);
  }
}

/** Whether a failed call may have taken effect, for its message. */
function whatItMeans(call: Call): string {
  return call.stage === "queue" ? "before anything was sent" : "after it was sent: it may still take effect";
}

function enginesOf(indices: readonly number[]): string {
  return indices.length === 1 ? `engine ${indices[0]}` : `engines ${indices.join(", ")}`;
}
