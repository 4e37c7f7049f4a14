import { type BatchTokenIDOutSlim, decodeBatchTokenIDOutSlim, encodeAbortRids } from "../messages.ts";
import type { AbortListeners } from "../transport/abort-listeners.ts";
import type { ConnectionEvent } from "../transport/connection.ts";
import type { EngineLoad, GenerateOptions, GenerateRequest, OutputStream, RoutableEngine, Routing } from "../transport/generation.ts";
import { OutputReaders } from "../transport/output-readers.ts";
import { asEngineWireError, EngineWireError } from "../wire/errors.ts";
import type { Engine, EngineTable } from "./engine-table.ts";
import { encodeRequest } from "./generate-request.ts";
import { Generation } from "./generation.ts";
import { LoadReport } from "./load-report.ts";
import { chunkOf, requestIdsOf } from "./output-columns.ts";
import { duplicate, RequestIds } from "./request-ids.ts";
import { RequestRouter } from "./request-router.ts";
import { RowOrder } from "./row-order.ts";
import type { Outgoing } from "./send-queue.ts";

const add = Uint8Array.of(0x00);
const abort = Uint8Array.of(0x01);

/** Every batch brings a load; as events, one a second is plenty. */
const loadEventsMs = 1000;

/** What generations need of the connection around them. */
export interface GenerationOwner {
  /** Hands a message to the socket; `failed` hears why an engine does not take it. */
  send(engine: Engine, frames: readonly Uint8Array[], failed: (error: unknown) => void): Outgoing;
  /** An engine's socket refused a message: says what becomes of the request, and of the engine where it is gone. */
  refused(engine: Engine, error: unknown): EngineWireError;
  /** Reports what happened outside of streams. */
  report(event: ConnectionEvent): void;
}

/** The requests that generate, from their ADD to their last chunk. */
export class Generations {
  readonly #engines: EngineTable;
  readonly #owner: GenerationOwner;
  readonly #signals: AbortListeners;
  readonly #router: RequestRouter;
  readonly #ranks: ReadonlyMap<number, number>;
  readonly #running = new Map<string, Generation>();
  /** How many of them each engine has. */
  readonly #inFlight = new Map<number, number>();
  /** The order of each engine's rows. */
  readonly #orders = new Map<number, RowOrder>();
  readonly #loads = new Map<number, LoadReport>();
  /** When a load was last reported as an event. */
  readonly #loadReported = new Map<number, number>();
  readonly #ids = new RequestIds(performance.now());
  /** Ids to abort, by engine, collected until the present job has ended: one message for many. */
  readonly #aborts = new Map<number, string[]>();
  readonly #readers = new OutputReaders(() => this.#ids.next());
  #closed: EngineWireError | undefined;

  constructor(engines: EngineTable, routing: Routing, signals: AbortListeners, owner: GenerationOwner) {
    this.#engines = engines;
    this.#owner = owner;
    this.#signals = signals;
    this.#router = new RequestRouter(routing, engines.indices);
    this.#ranks = new Map([...engines].map(({ index, registration }) => [index, registration.dataParallelRank]));
  }

  /** How many requests are in flight on an engine. */
  inFlight(engine: number): number {
    return this.#inFlight.get(engine) ?? 0;
  }

  /** What an engine last said about its load. */
  load(engine: number): EngineLoad | undefined {
    return this.#loads.get(engine)?.load(this.inFlight(engine));
  }

  /** Sends a request. Whatever is wrong with it is read from the stream. */
  start(request: GenerateRequest, options: GenerateOptions): OutputStream {
    return this.#readers.open(request, options, (rid, bufferedTokens) => this.#send(request, rid, bufferedTokens, options));
  }

  /** Takes an engine's output. Throws `malformed` for a batch that is refused whole; the streams it may have had rows for have then failed. */
  receive(engine: number, frame: Uint8Array): void {
    let batch: BatchTokenIDOutSlim | undefined;
    let rids: readonly string[];
    try {
      batch = decodeBatchTokenIDOutSlim(frame);
      rids = requestIdsOf(batch);
    } catch (error) {
      const failure = asEngineWireError(error);
      this.#lose(engine, batch?.rids ?? undefined, failure);
      throw failure;
    }
    const order = this.#orders.get(engine) ?? new RowOrder(this.#running);
    this.#orders.set(engine, order);
    order.begin();
    for (let row = 0; row < rids.length; row++) {
      const rid = rids[row] as string;
      const generation = order.find(rid);
      if (generation === undefined || generation.engine !== engine) this.#unexpected(engine, rid);
      else this.#deliver(generation, batch, row);
    }
    // no pages at all is how a batch says that it brings no load
    if (batch.kvTotalPages !== 0) this.#noteLoad(engine, new LoadReport(batch));
  }

  /** Ends the streams of an engine that is dead. */
  engineDied(engine: number, death: EngineWireError): void {
    this.#loads.delete(engine);
    this.#orders.delete(engine);
    for (const generation of this.#of(engine)) {
      const message = `request ${generation.rid} ended: ${death.message}`;
      this.#end(generation, new EngineWireError("engine_dead", message, { engine, cause: death }));
    }
  }

  /** Ends all streams, and aborts their requests. */
  close(error: EngineWireError): void {
    this.#closed = error;
    for (const generation of [...this.#running.values()]) this.#abort(generation, error);
    for (const engine of [...this.#aborts.keys()]) this.#sendAborts(engine);
  }

  #send(request: GenerateRequest, rid: string, bufferedTokens: number, { signal, engine: pinned }: GenerateOptions): Generation {
    if (this.#closed !== undefined) throw this.#closed;
    if (signal?.aborted) throw new EngineWireError("aborted", "generate was aborted before anything was sent", { cause: signal.reason });
    if (this.#running.has(rid)) throw duplicate(rid, "is in flight: a second request of one id would end the process of an engine");
    this.#ids.check(rid, performance.now());
    const engine = this.#engine(request, pinned);
    const frames = encodeRequest(request, rid, engine.registration);
    const generation = new Generation(rid, engine.index, bufferedTokens, (left) => this.#leave(left));
    this.#running.set(rid, generation);
    this.#inFlight.set(engine.index, this.inFlight(engine.index) + 1);
    if (signal !== undefined) {
      generation.ignoreSignal = this.#signals.add(signal, () => {
        generation.queue.clear();
        this.#abort(
          generation,
          new EngineWireError("aborted", `request ${rid} was aborted`, { engine: engine.index, cause: signal.reason }),
        );
      });
    }
    generation.outgoing = this.#owner.send(engine, [add, ...frames], (error) => {
      // the socket did not take it, so there is nothing to abort
      this.#end(generation, this.#owner.refused(engine, error), false);
    });
    return generation;
  }

  #engine(request: GenerateRequest, pinned: number | undefined): Engine {
    const index = pinned ?? this.#router.choose(request, this.#routable(), this.#ranks);
    const engine = this.#engines.get(index);
    if (engine === undefined) {
      const why = `engine is ${String(index)}, and this connection has ${this.#engines.indices.join(", ")}`;
      throw new EngineWireError("invalid_argument", `generate: ${why}`, { path: "engine" });
    }
    if (engine.death === undefined) return engine;
    const message = `the request was not sent: engine ${index} is dead (${engine.death.message})`;
    throw new EngineWireError("engine_dead", message, { engine: index, cause: engine.death });
  }

  /** The engines that are up. Throws `engine_dead` where none is. */
  #routable(): readonly RoutableEngine[] {
    const up: RoutableEngine[] = [];
    let death: EngineWireError | undefined;
    for (const { index, registration, death: cause } of this.#engines) {
      death = cause;
      if (cause !== undefined) continue;
      const load = this.load(index);
      const inFlight = this.inFlight(index);
      up.push({ index, dataParallelRank: registration.dataParallelRank, inFlight, ...(load !== undefined && { load }) });
    }
    if (up.length > 0) return up;
    throw new EngineWireError("engine_dead", `the request was not sent: every engine is dead`, { cause: death });
  }

  #deliver(generation: Generation, batch: BatchTokenIDOutSlim, row: number): void {
    const chunk = chunkOf(batch, row);
    if (!generation.queue.push(chunk)) {
      const message = `request ${generation.rid}: its reader left more tokens unread than bufferedTokens allows; read faster, or allow more`;
      this.#abort(generation, new EngineWireError("slow_consumer", message, { engine: generation.engine }), chunk.finishReason !== null);
    } else if (chunk.finishReason !== null) {
      this.#end(generation);
    }
  }

  #noteLoad(engine: number, report: LoadReport): void {
    this.#loads.set(engine, report);
    const reported = this.#loadReported.get(engine);
    if (reported !== undefined && report.at - reported < loadEventsMs) return;
    this.#loadReported.set(engine, report.at);
    this.#owner.report({ type: "load", engine, load: report.load(this.inFlight(engine)) });
  }

  /** An engine that has gone idle says so no more: its last report still has it busy. */
  #noteIdle(engine: number): void {
    const load = this.inFlight(engine) === 0 ? this.load(engine) : undefined;
    if (load !== undefined) this.#owner.report({ type: "load", engine, load });
  }

  #unexpected(engine: number, rid: string): void {
    // an engine goes on until it has read the abort, and may have finished before
    if (!this.#ids.wasAborted(rid, performance.now())) this.#owner.report({ type: "unexpected_output", engine, rid });
  }

  /** Fails the streams whose output was in a batch that cannot be used: those it names, or all of the engine. */
  #lose(engine: number, rids: readonly string[] | undefined, cause: EngineWireError): void {
    const named = rids?.map((rid) => this.#running.get(rid)).filter((generation) => generation?.engine === engine);
    for (const generation of new Set(named ?? this.#of(engine))) {
      if (generation === undefined) continue;
      const message = `request ${generation.rid}: output of engine ${engine} could not be read, so that tokens would be missing`;
      this.#abort(generation, new EngineWireError("malformed", message, { engine, cause }));
    }
  }

  #leave(generation: Generation): void {
    generation.queue.clear();
    this.#abort(generation, undefined);
  }

  /** Ends a stream before its request has; one that is still to be sent is not sent. */
  #abort(generation: Generation, error: EngineWireError | undefined, finished = false): void {
    const { rid, engine, outgoing } = generation;
    if (generation.ended) return;
    const unsent = outgoing?.state === "queued";
    if (unsent) outgoing.state = "cancelled";
    this.#end(generation, error, !unsent);
    if (unsent || finished) return;
    this.#ids.aborted(rid, performance.now());
    const collected = this.#aborts.get(engine);
    if (collected !== undefined) {
      collected.push(rid);
      return;
    }
    this.#aborts.set(engine, [rid]);
    queueMicrotask(() => this.#sendAborts(engine));
  }

  #sendAborts(index: number): void {
    const rids = this.#aborts.get(index);
    const engine = this.#engines.get(index);
    this.#aborts.delete(index);
    if (rids === undefined || engine === undefined || engine.death !== undefined) return;
    this.#owner.send(engine, [abort, encodeAbortRids(rids)], (error) => void this.#owner.refused(engine, error));
  }

  #end(generation: Generation, error?: EngineWireError, sent = true): void {
    const { rid, engine } = generation;
    if (generation.ended) return;
    generation.ended = true;
    this.#running.delete(rid);
    this.#inFlight.set(engine, this.inFlight(engine) - 1);
    if (sent) this.#ids.finished(rid, performance.now());
    this.#readers.ended(generation);
    this.#noteIdle(engine);
    generation.ignoreSignal?.();
    generation.queue.end(error);
  }

  #of(engine: number): readonly Generation[] {
    return [...this.#running.values()].filter((generation) => generation.engine === engine);
  }
}
