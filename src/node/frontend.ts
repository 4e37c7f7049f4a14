import { type Operation, operations } from "../../generated/tokenspeed/operations.ts";
import {
  type ControlOutput,
  type ControlReplySlim,
  type ControlRequestInit,
  decodeControlOutput,
  type EngineCoreReadyResponse,
  encodeControlRequest,
  peekTag,
  type ReplyOf,
  type RequestTag,
} from "../messages.ts";
import { AbortListeners } from "../transport/abort-listeners.ts";
import { type EngineCapabilities, lackedBy, releaseOf, unsupportedBecause } from "../transport/capabilities.ts";
import type { CallOptions, CloseReason, Connection, ConnectionEvent, EngineInfo, EngineReply } from "../transport/connection.ts";
import { Deadlines } from "../transport/deadlines.ts";
import { EventCounter } from "../transport/event-counter.ts";
import { EventStream } from "../transport/event-stream.ts";
import { checkCallOptions } from "../transport/timeouts.ts";
import { dropTrailing } from "../wire/drop-trailing.ts";
import { EngineWireError, isEngineWireError } from "../wire/errors.ts";
import type { ResolvedBindOptions } from "./bind-options.ts";
import { Call } from "./call.ts";
import { engineOf, identityOf, type Registered } from "./handshake.ts";
import { LaneTable } from "./lanes.ts";
import { SlimDialect } from "./slim-dialect.ts";
import type { EngineSockets } from "./sockets.ts";
import { socketErrorCode } from "./zeromq.ts";

const sentinel = "ENGINE_CORE_DEAD";
const control = Uint8Array.of(0x02);
const probe = operations.isSchedulerPaused;
const slimReply = "ControlReplySlim" satisfies ControlReplySlim["$tag"];

/** Whether a message is the raw frame with which an engine says that it ends. */
export function isDeathSentinel(frames: readonly Uint8Array[]): boolean {
  const frame = frames[0];
  if (frames.length !== 1 || frame?.length !== sentinel.length) return false;
  for (let index = 0; index < sentinel.length; index++) if (frame[index] !== sentinel.charCodeAt(index)) return false;
  return true;
}

interface Engine {
  readonly index: number;
  readonly identity: Uint8Array;
  readonly registration: EngineCoreReadyResponse;
  /** Puts the second control dialect on and off, where the engine speaks it. */
  readonly slim?: SlimDialect;
  capabilities: EngineCapabilities;
  /** Why it is dead. */
  death?: EngineWireError;
}

/** The connection to engines that dialled in over ZeroMQ. */
export class Frontend implements Connection {
  readonly closed: Promise<CloseReason>;
  readonly #sockets: EngineSockets;
  readonly #engines = new Map<number, Engine>();
  readonly #indices: readonly number[];
  readonly #lanes: LaneTable;
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
    options: Pick<ResolvedBindOptions, "eventLimit" | "release">,
  ) {
    this.#sockets = sockets;
    for (const [index, { registration, dialect }] of registered) {
      const release = options.release ?? releaseOf(registration.vllmVersion);
      const capabilities = { control: true, dialect, ...(release !== undefined && { release }) };
      const slim = dialect === "slim" ? { slim: new SlimDialect() } : {};
      this.#engines.set(index, { index, identity: identityOf(index), registration, capabilities, ...slim });
    }
    for (const operation of Object.values<Operation>(operations)) this.#operations.set(operation.request, operation);
    this.#events = new EventStream<ConnectionEvent>(options.eventLimit, (count) => ({ type: "events_dropped", count }));
    this.#indices = [...this.#engines.keys()];
    this.#lanes = new LaneTable(this.#indices, { send: (call) => this.#send(call), report: (event) => this.#report(event) });
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    sockets.deliverTo({
      handshake: (frames) => this.#unexpected("handshake", frames, "an engine dials in, but engines handshake once: bind again for it"),
      input: (frames) => this.#unexpected("input", frames, "a message from a registered engine"),
      output: (engine, frames) => this.#receive(engine, frames),
      connected: () => {},
      lost: (engine) => this.#died(engine, "its connection ended"),
      failed: (error) => void this.#close({ reason: "a socket failed", error: asError(error) }),
    });
  }

  get engines(): readonly EngineInfo[] {
    return [...this.#engines.values()].map(({ index, registration, capabilities, death }) => ({
      index,
      registration,
      capabilities,
      state: death === undefined ? "up" : "dead",
    }));
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
    const engines = this.#addressed(operation, options.engines);
    const payload = encodeControlRequest(request);
    this.#checkUsable(operation, engines, options.signal);
    this.#checkFields(operation, request, engines, options.release);
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

  /**
   * Asks every engine a question without side effects: one that does not answer in time is taken for one without control,
   * and calls to it fail at once instead of at their deadline, until the answer comes after all. An engine that cannot be
   * asked is not: one of the second dialect has announced it, and one of an older release refuses every call anyway.
   */
  async probe(timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
    const asked = [...this.#engines.values()].filter(({ capabilities }) => unsupportedBecause(capabilities, probe) === undefined);
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

  /** Which engines a call goes to, ascending. */
  #addressed(operation: Operation, engines: readonly number[] | undefined): readonly number[] {
    const all = this.#indices;
    if (engines === undefined) return all;
    const invalid = (why: string): EngineWireError =>
      new EngineWireError("invalid_argument", `${operation.name}: engines ${why}`, { operation: operation.name, path: "engines" });
    const chosen = new Set<number>(engines);
    for (const engine of chosen) if (!this.#engines.has(engine)) throw invalid(`has ${engine}, and this connection has ${all.join(", ")}`);
    if (operation.answers === "gated" && chosen.size < all.length) {
      throw invalid(`must be all of ${all.join(", ")}: a gated operation is answered only when every engine of the group holds it`);
    }
    return all.filter((engine) => chosen.has(engine));
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
    for (const index of engines) {
      const engine = this.#engines.get(index);
      const unsupported = engine && unsupportedBecause(engine.capabilities, operation);
      if (unsupported !== undefined) {
        const message = `${operation.name} was not sent: engine ${index} cannot do it, for ${unsupported}`;
        throw new EngineWireError("unsupported", message, { ...details, engine: index });
      }
      const cause = engine?.death;
      if (cause === undefined) continue;
      const message = `${operation.name} was not sent: engine ${index} is dead (${cause.message})`;
      throw new EngineWireError("engine_dead", message, { ...details, engine: index, cause, missing: engines });
    }
  }

  /** Refuses a field that an engine would ignore. */
  #checkFields(operation: Operation, request: object, engines: readonly number[], told: string | undefined): void {
    if (operation.lacks === undefined) return;
    for (const index of engines) {
      const release = told ?? this.#engines.get(index)?.capabilities.release;
      const field = lackedBy(release, operation).find((name) => (request as Readonly<Record<string, unknown>>)[name] !== undefined);
      if (field === undefined) continue;
      const why = `engine ${index} is of release ${release}, which does not know ${field} and would ignore it; leave it out`;
      throw new EngineWireError("unsupported", `${operation.name} was not sent: ${why}`, {
        operation: operation.name,
        stage: "queue",
        engine: index,
        path: `${operation.request}.${field}`,
      });
    }
  }

  /** What is sent to an engine: without the fields that its release had not, in the dialect that it speaks. */
  #payloadFor({ capabilities, slim }: Engine, { operation, payload, release }: Call): Uint8Array {
    if (slim !== undefined) return slim.encode(operation, payload);
    const lacked = lackedBy(release ?? capabilities.release, operation).length;
    return lacked === 0 ? payload : dropTrailing(payload, lacked);
  }

  #send(call: Call): void {
    call.sent();
    for (const index of call.engines) {
      const engine = this.#engines.get(index);
      if (engine === undefined) continue;
      const failed = (error: unknown): void => this.#sendFailed(call, index, error);
      const payload = this.#payloadFor(engine, call);
      call.outgoing.set(index, this.#sockets.sendInput([engine.identity, control, payload], failed));
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

  #receive(engine: number, frames: readonly Uint8Array[]): void {
    if (isDeathSentinel(frames)) {
      this.#died(engine, "it shut down");
      return;
    }
    let reply: ControlOutput | undefined;
    try {
      const [frame] = frames;
      if (frame === undefined || frames.length !== 1) throw new EngineWireError("malformed", `expected one frame, got ${frames.length}`);
      const slim = this.#engines.get(engine)?.slim;
      reply = slim === undefined || peekTag(frame) !== slimReply ? decodeControlOutput(frame) : slim.decode(frame);
    } catch (error) {
      const failure = asError(error);
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

function asError(error: unknown): EngineWireError {
  if (isEngineWireError(error)) return error;
  return new EngineWireError("malformed", String((error as Error | null)?.message ?? error), { cause: error });
}
