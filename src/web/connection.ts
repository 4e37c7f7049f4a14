import { decodeEnginesChanged, decodeEngineView, decodeEvent } from "../../generated/relay/decoders.ts";
import type { EnginesChanged, Event, Welcome } from "../../generated/relay/types.ts";
import { type Operation, operations } from "../../generated/tokenspeed/operations.ts";
import type { EngineState } from "../client/guard/engine-state.ts";
import { type ControlRequestInit, decodeControlOutput, encodeControlRequest, type ReplyOf, type RequestTag } from "../messages.ts";
import type {
  CallOptions,
  CloseReason,
  Connection,
  ConnectionEvent,
  EngineInfo,
  EngineReply,
  EventCounts,
  FarCallOptions,
  FarGuard,
} from "../transport/connection.ts";
import { EventCounter } from "../transport/event-counter.ts";
import { EventStream } from "../transport/event-stream.ts";
import type { EngineLoad, GenerateOptions, GenerateRequest, OutputStream } from "../transport/generation.ts";
import { infoOf, stateOf } from "../transport/relay/engine-view.ts";
import { fromEvent } from "../transport/relay/event.ts";
import { checkCallOptions } from "../transport/timeouts.ts";
import { EngineWireError, isEngineWireError } from "../wire/errors.ts";
import { RelayLink } from "./link.ts";
import type { LinkStatus, ResolvedConnectOptions } from "./link-options.ts";
import type { RawReply } from "./pending.ts";
import { LinkStreams } from "./streams.ts";

/** Events that may wait for each reader. */
const eventLimit = 1024;

const byRequest: ReadonlyMap<string, Operation> = /* @__PURE__ */ new Map(
  Object.values<Operation>(operations).map((operation) => [operation.request, operation]),
);

/**
 * A connection to engines through a relay. It outlives a loss of the relay: calls that are new wait for it, up to their
 * deadline; one that was under way rejects with `outcome_unknown` and is never sent again.
 */
export interface RelayConnection extends Connection {
  /** The relay's guard, in common for all its clients. */
  readonly guard: FarGuard;
  /** Whom the credential names. */
  readonly identity: string;
  /** What it allows: effects of operations, and `generate`, `metrics`, `unguarded`, `unpickle`. */
  readonly scopes: readonly string[];
  /** How the link to the relay is, now and whenever that changes, until it has closed. */
  status(): AsyncIterableIterator<LinkStatus>;
}

/** Makes a `RelayConnection` of a link; resolves when the relay has welcomed it. */
export async function openConnection(url: string, options: ResolvedConnectOptions): Promise<RelayConnection> {
  const connection = new LinkedConnection(url, options);
  await connection.open();
  return connection;
}

class LinkedConnection implements RelayConnection {
  readonly guard: FarGuard;
  readonly closed: Promise<CloseReason>;
  readonly #link: RelayLink;
  readonly #engines = new Map<number, EngineInfo>();
  readonly #states = new Map<number, EngineState>();
  readonly #streams: LinkStreams;
  /** What each engine said about its load, and when that came here. */
  readonly #loads = new Map<number, { readonly load: EngineLoad; readonly at: number }>();
  readonly #counter = new EventCounter();
  readonly #events = new EventStream<ConnectionEvent>(eventLimit, (count) => ({ type: "events_dropped", count }));
  readonly #statuses = new EventStream<LinkStatus>(eventLimit, () => this.#link.status);

  constructor(url: string, options: ResolvedConnectOptions) {
    this.#link = new RelayLink(url, options, {
      welcomed: (welcome) => this.#welcomed(welcome),
      status: (status) => {
        // before its connections are lost, so that streams end with why
        if (status.state === "closed") this.#streams.close(closedBecause(status.reason));
        this.#statuses.emit(status);
      },
      // a newer relay may send what this release does not know
      other: (tag, message, socket) => {
        if (tag === "EnginesChanged") this.#changed(decodeEnginesChanged(message));
        else if (tag === "Event") this.#heard(decodeEvent(message));
        else this.#streams.received(tag, message, socket);
      },
      lost: (socket, error) => this.#streams.lost(socket, error),
    });
    this.#streams = new LinkStreams(this.#link);
    this.closed = this.#link.closed;
    const states = (): readonly EngineState[] => [...this.#states.values()];
    this.guard = {
      get states() {
        return states();
      },
      call: (request, callOptions, guarded) => this.#call(request, callOptions, guarded),
    };
    void this.closed.then((reason) => {
      this.#events.emit({ type: "closed", reason });
      this.#events.end();
      this.#statuses.end();
    });
  }

  open(): Promise<void> {
    return this.#link.open();
  }

  get engines(): readonly EngineInfo[] {
    const now = performance.now();
    return [...this.#engines.values()].map(({ load: _, ...info }) => {
      const told = this.#loads.get(info.index);
      const load = told && { ...told.load, ageMs: told.load.ageMs + now - told.at };
      return { ...info, inFlight: this.#streams.inFlight(info.index), ...(load !== undefined && { load }) };
    });
  }

  get counts(): EventCounts {
    return this.#counter.counts;
  }

  get identity(): string {
    return this.#link.welcome?.identity ?? "";
  }

  get scopes(): readonly string[] {
    return this.#link.welcome?.scopes.split(" ") ?? [];
  }

  async call<Tag extends RequestTag>(
    request: ControlRequestInit & { readonly $tag: Tag },
    options: CallOptions = {},
  ): Promise<readonly EngineReply<ReplyOf<Tag>>[]> {
    checkCallOptions(options);
    // the reply's tag is checked against the request's
    return (await this.#call(request, options, true)) as readonly EngineReply<ReplyOf<Tag>>[];
  }

  generate(request: GenerateRequest, options: GenerateOptions = {}): OutputStream {
    return this.#streams.start(request, options);
  }

  events(): AsyncIterableIterator<ConnectionEvent> {
    return this.#events.read();
  }

  async *status(): AsyncGenerator<LinkStatus, void, undefined> {
    const changes = this.#statuses.read();
    yield this.#link.status;
    yield* changes;
  }

  async close(reason?: string): Promise<void> {
    await this.#link.close(reason);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #call(request: ControlRequestInit, options: FarCallOptions, guard: boolean): Promise<readonly EngineReply[]> {
    const operation = byRequest.get((request as { $tag?: string } | null)?.$tag ?? "");
    if (operation === undefined)
      throw new EngineWireError("unknown_tag", "the request's $tag names no control operation", { path: "$tag" });
    const payload = encodeControlRequest(request);
    const { signal, engines, release, onReply, onWait } = options;
    const replies: EngineReply[] = [];
    const take = (raw: RawReply): void => {
      const reply = read(operation, raw);
      replies.push(reply);
      tell(onReply, reply);
    };
    try {
      const timeoutMs = options.timeoutMs ?? operation.timeoutMs;
      await this.#link.call(payload, { signal, engines, release, guard, timeoutMs, onReply: take, onWait });
    } catch (error) {
      throw isEngineWireError(error) ? inTermsOf(operation, error, inOrder(replies)) : error;
    }
    return inOrder(replies);
  }

  #welcomed({ engines }: Welcome): void {
    this.#engines.clear();
    this.#states.clear();
    for (const bytes of engines) {
      const view = decodeEngineView(bytes);
      this.#engines.set(view.index, infoOf(view));
      this.#states.set(view.index, stateOf(view));
      if (view.load !== null) this.#loads.set(view.index, { load: view.load, at: performance.now() });
    }
    this.#streams.welcomed();
  }

  #changed({ engines }: EnginesChanged): void {
    for (const view of engines) {
      const known = this.#engines.get(view.index);
      if (known === undefined) continue;
      this.#engines.set(view.index, infoOf(view, known));
      this.#states.set(view.index, stateOf(view));
    }
  }

  #heard(message: Event): void {
    const event = fromEvent(message);
    if (event === undefined) return;
    if (event.type === "load") this.#loads.set(event.engine, { load: event.load, at: performance.now() });
    this.#counter.add(event);
    this.#events.emit(event);
  }
}

function closedBecause({ reason, error }: CloseReason): EngineWireError {
  return new EngineWireError("closed", `the link closed (${reason})`, error === undefined ? {} : { cause: error });
}

/** A reply of another operation would be one given to the wrong caller. */
function read(operation: Operation, { engine, reply: bytes, durationMs }: RawReply): EngineReply {
  const reply = decodeControlOutput(bytes);
  if (reply.$tag === operation.reply) return { engine, reply, durationMs };
  throw new EngineWireError("malformed", `the relay answered ${operation.name} with a ${reply.$tag}`, {
    operation: operation.name,
    engine,
    expected: operation.reply,
    found: reply.$tag,
  });
}

function tell(onReply: CallOptions["onReply"], reply: EngineReply): void {
  try {
    onReply?.(reply);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

function inOrder(replies: readonly EngineReply[]): readonly EngineReply[] {
  return [...replies].sort((a, b) => a.engine - b.engine);
}

/** The same error with the operation and decoded replies, as a connection of another kind would have them. */
function inTermsOf(operation: Operation, error: EngineWireError, replies: readonly EngineReply[]): EngineWireError {
  const { code, cause, engine, stage, path, offset, expected, found, missing } = error;
  const details: Record<string, unknown> = { cause, engine, stage, path, offset, expected, found, missing };
  for (const [name, value] of Object.entries(details)) if (value === undefined) delete details[name];
  const sent = stage !== undefined && stage !== "queue";
  const told = error.operation === undefined ? `${operation.name}: ` : "";
  return new EngineWireError(code, `${told}${error.message.slice(code.length + 2)}`, {
    ...details,
    operation: operation.name,
    ...((sent || replies.length > 0) && { replies }),
  });
}
