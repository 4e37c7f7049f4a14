import type { Deadline } from "../transport/deadlines.ts";
import type { EngineWireError } from "../wire/errors.ts";
import type { RelaySocket } from "./socket.ts";

/** One engine's reply as bytes. */
export interface RawReply {
  readonly engine: number;
  /** The encoded reply. */
  readonly reply: Uint8Array;
  /** From the request's leaving the relay until the reply was read there, in milliseconds. */
  readonly durationMs: number;
}

/** What a call of a link may say besides its request. */
export interface LinkCallOptions {
  /** Gives the call up when aborted. */
  readonly signal?: AbortSignal | undefined;
  /** How long to wait for all replies, in milliseconds; waiting for the relay counts. Default 60000. */
  readonly timeoutMs?: number | undefined;
  /** Indices of the engines to ask. Default: all that the credential allows. */
  readonly engines?: readonly number[] | undefined;
  /** The release that the request is written for. Default: each engine's own. */
  readonly release?: string | undefined;
  /** `false` passes the relay's guard by; that needs the scope `unguarded`. Default true. */
  readonly guard?: boolean | undefined;
  /** Hears each reply as it arrives. What it throws rejects the call. */
  readonly onReply?: ((reply: RawReply) => void) | undefined;
  /** Hears that the call waits for another one that is under way. */
  readonly onWait?: ((holder: string) => void) | undefined;
}

/** A call that has not settled. */
export interface Pending {
  readonly id: number;
  readonly request: Uint8Array;
  readonly options: LinkCallOptions;
  readonly timeoutMs: number;
  readonly until: number;
  readonly replies: RawReply[];
  readonly resolve: (replies: readonly RawReply[]) => void;
  readonly reject: (error: EngineWireError) => void;
  /** Where it was sent; absent while it waits for a connection. */
  socket?: RelaySocket;
  deadline?: Deadline;
  ignoreAbort?: (() => void) | undefined;
}
