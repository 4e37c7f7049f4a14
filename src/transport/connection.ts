import type { EngineRelease } from "../../generated/tokenspeed/operations.ts";
import type { EngineState } from "../client/guard/engine-state.ts";
import type { ControlOutput, ControlRequestInit, EngineCoreReadyResponse, ReplyOf, RequestTag } from "../messages.ts";
import type { EngineWireError } from "../wire/errors.ts";
import type { EngineCapabilities } from "./capabilities.ts";
import type { EngineLoad, GenerateOptions, GenerateRequest, OutputStream } from "./generation.ts";

/** What a call may say besides its request. */
export interface CallOptions {
  /**
   * Gives the call up when aborted: the promise rejects with `aborted` at once, and the reply still owed is swallowed
   * when it comes. A signal that is aborted already sends nothing.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * How long to wait for all replies, in milliseconds, from 1 to 2147483647; queueing counts. Defaults to the
   * operation's own. There is no way to wait for ever.
   */
  readonly timeoutMs?: number | undefined;
  /** Indices of the engines to ask. Defaults to all; a gated operation takes no subset. */
  readonly engines?: readonly number[] | undefined;
  /**
   * The release that the request is written for, whatever the engines say theirs is: a field that it had not is refused
   * with `unsupported` when set, and left out otherwise. Defaults to each engine's own.
   */
  readonly release?: EngineRelease | undefined;
  /**
   * Hears each engine's reply as it arrives, before the call resolves with all of them. What it throws is thrown where
   * nobody catches it, as from an event listener.
   */
  readonly onReply?: ((reply: EngineReply) => void) | undefined;
}

/** One engine's answer. */
export interface EngineReply<Reply extends ControlOutput = ControlOutput> {
  /** The engine's index on the wire. */
  readonly engine: number;
  /** What it answered. */
  readonly reply: Reply;
  /** From the moment the request was handed to the socket until the reply was read, in milliseconds. */
  readonly durationMs: number;
}

/** What is known of an engine. */
export interface EngineInfo {
  /** Its index on the wire. */
  readonly index: number;
  /** What it said about itself when it registered. */
  readonly registration: EngineCoreReadyResponse;
  /** What it can be asked for. */
  readonly capabilities: EngineCapabilities;
  /** `dead` once its sentinel came or its connection ended; it never comes back on this connection. */
  readonly state: "up" | "dead";
  /** Requests of this connection that have not ended there. */
  readonly inFlight: number;
  /** How busy it last said that it is; absent before its first output. */
  readonly load?: EngineLoad;
}

/** What a call under a guard at the far end may say besides its request. */
export interface FarCallOptions extends CallOptions {
  /** Hears that the call waits for another one that is under way; `holder` says which, and whose. */
  readonly onWait?: ((holder: string) => void) | undefined;
}

/** A guard at the far end of a connection, in common for all who call through it. */
export interface FarGuard {
  /** What it knows of each engine, in index order. */
  readonly states: readonly EngineState[];
  /** Is `Connection.call` under this guard, or past it where `guarded` is false. Throws `refused` as well. */
  call(request: ControlRequestInit, options: FarCallOptions, guarded: boolean): Promise<readonly EngineReply[]>;
}

/** Something that happened outside of a call's own result. */
export type ConnectionEvent =
  | { readonly type: "engine_dead"; readonly engine: number; readonly error: EngineWireError }
  /** The reply to an abandoned call came and was swallowed. */
  | {
      readonly type: "late_reply";
      readonly engine: number;
      readonly tag: string;
      readonly lateMs: number;
      readonly request: ControlRequestInit;
      readonly reply: ControlOutput;
    }
  /** The reply to an abandoned call was proved lost, so its lane is free again. */
  | { readonly type: "lost_reply"; readonly engine: number; readonly tag: string; readonly request: ControlRequestInit }
  /** A reply that no call waits for. */
  | { readonly type: "unexpected_reply"; readonly engine: number; readonly tag: string }
  /** A message of a kind this release does not know. */
  | { readonly type: "unknown_tag"; readonly engine: number; readonly tag: string }
  /** A message that does not decode. */
  | { readonly type: "malformed_message"; readonly engine: number; readonly error: EngineWireError }
  /** Output of a request that this connection has not got on that engine. */
  | { readonly type: "unexpected_output"; readonly engine: number; readonly rid: string }
  /** What an engine says about its load, at most once a second of each; and when nothing of this connection is left there. */
  | { readonly type: "load"; readonly engine: number; readonly load: EngineLoad }
  /** A message on a socket that should be silent: an engine that dials again, for instance. */
  | { readonly type: "unexpected_message"; readonly socket: "handshake" | "input"; readonly engine?: number; readonly detail: string }
  /** The reader of the events was too slow; this many older ones are gone. */
  | { readonly type: "events_dropped"; readonly count: number }
  | { readonly type: "closed"; readonly reason: CloseReason };

/** How often each event that is not an engine's death has happened. */
export interface EventCounts {
  readonly lateReplies: number;
  readonly lostReplies: number;
  readonly unexpectedReplies: number;
  readonly unknownTags: number;
  readonly malformedMessages: number;
  readonly unexpectedMessages: number;
  readonly unexpectedOutputs: number;
}

/** Why a connection is closed. */
export interface CloseReason {
  /** A sentence, from the caller of `close` or the connection itself. */
  readonly reason: string;
  /** What forced it, where nobody asked for it. */
  readonly error?: EngineWireError;
}

/**
 * A way to a group of engines. Connections are single use: one that has closed stays closed. Every promise they hand
 * out settles.
 */
export interface Connection extends AsyncDisposable {
  /** The engines, in index order. */
  readonly engines: readonly EngineInfo[];
  /** How often something unexpected was seen and survived. */
  readonly counts: EventCounts;
  /** The guard at the far end, where one is kept there: a client then keeps none of its own. */
  readonly guard?: FarGuard;
  /** Resolves when the connection has closed, with the reason. Never rejects. */
  readonly closed: Promise<CloseReason>;
  /**
   * Sends one request to the addressed engines and resolves with their replies in engine order, whatever they say.
   * Throws `EngineWireError`: `invalid_argument`, `unsupported`, the codec's codes for a request that must not leave, `timeout`,
   * `previous_call_pending`, `aborted`, `engine_dead`, `closed`.
   */
  call<Tag extends RequestTag>(
    request: ControlRequestInit & { readonly $tag: Tag },
    options?: CallOptions,
  ): Promise<readonly EngineReply<ReplyOf<Tag>>[]>;
  /**
   * Sends a request to the engine that the routing chooses and streams its output. Never throws: what is wrong with a
   * request is thrown when the stream is read.
   */
  generate(request: GenerateRequest, options?: GenerateOptions): OutputStream;
  /** What happens outside of calls, from now on. Bounded: a slow reader loses the oldest and is told how many. */
  events(): AsyncIterableIterator<ConnectionEvent>;
  /** Fails what is pending with `closed`, closes all sockets and resolves. Closing twice is closing once. */
  close(reason?: string): Promise<void>;
}
