import type { OutputChunk, OutputStream } from "../transport/generation.ts";
import { OutputQueue } from "../transport/output-queue.ts";
import type { OutputSource } from "../transport/output-reader.ts";
import type { RelaySocket } from "./socket.ts";

/** Chunks that may be on their way before the reader has taken any. */
const window = 64;

/** What is sent to open a stream. */
export interface StreamRequest {
  /** The encoded request. */
  readonly request: Uint8Array;
  /** The frames of its tensors. */
  readonly tensors: readonly Uint8Array[];
  /** The engine, where the caller wants one. */
  readonly wanted: number | undefined;
}

/** One stream through a relay. */
export class RelayedStream implements OutputSource {
  readonly id: number;
  readonly rid: string;
  /** Bounded by credit: what waits for a slow reader waits at the relay, which says when it is too much. */
  readonly queue = new OutputQueue(Number.POSITIVE_INFINITY);
  /** Tokens that may wait at the relay. */
  readonly bufferedTokens: number;
  /** Credit to begin with, in chunks. */
  readonly credit: number;
  readonly message: StreamRequest;
  /** The engine it went to, once the relay has said so. */
  engine: number | undefined;
  /** The connection it was sent over; undefined while it waits for one. */
  socket: RelaySocket | undefined;
  /** Ends the wait for a connection. */
  timer: ReturnType<typeof setTimeout> | undefined;
  /** Takes back the listener on its signal. */
  ignoreSignal: (() => void) | undefined;
  /** Lets so many chunks more come. */
  giveCredit: (chunks: number) => void = () => {};
  #taken = 0;
  readonly #left: (stream: RelayedStream) => void;

  constructor(id: number, rid: string, bufferedTokens: number, message: StreamRequest, left: (stream: RelayedStream) => void) {
    this.id = id;
    this.rid = rid;
    this.bufferedTokens = bufferedTokens;
    this.credit = Math.min(window, bufferedTokens);
    this.message = message;
    this.#left = left;
  }

  next(reader: OutputStream): Promise<IteratorResult<OutputChunk, undefined>> {
    // half of it at once: credit for each chunk would be as many messages as chunks
    if (++this.#taken >= this.credit / 2) {
      this.giveCredit(this.#taken);
      this.#taken = 0;
    }
    return this.queue.next(reader);
  }

  leave(): void {
    this.#left(this);
  }
}
