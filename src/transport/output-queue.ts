import type { EngineWireError } from "../wire/errors.ts";
import type { OutputChunk, OutputStream } from "./generation.ts";

type Result = IteratorResult<OutputChunk, undefined>;

interface Waiter {
  readonly resolve: (result: Result) => void;
  readonly reject: (error: EngineWireError) => void;
  /** Keeps the stream alive for as long as somebody waits for it. */
  readonly stream: OutputStream;
}

const end: Result = { value: undefined, done: true };

/** The chunks that a stream's reader has not taken yet, bounded by their tokens. */
export class OutputQueue {
  readonly #limit: number;
  #chunks: OutputChunk[] = [];
  /** The first chunk that was not taken. */
  #head = 0;
  #tokens = 0;
  /** Who waits for the next chunk; more than one are rare, and wait behind it. */
  #waiter: Waiter | undefined;
  #waiters: Waiter[] | undefined;
  #ended = false;
  #error: EngineWireError | undefined;

  /** `limit` is in tokens. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Adds a chunk, or returns false where it would be too many tokens. A single chunk always fits. */
  push(chunk: OutputChunk): boolean {
    const waiter = this.#waiter;
    if (waiter !== undefined) {
      this.#waiter = this.#waiters?.shift();
      waiter.resolve({ value: chunk, done: false });
      return true;
    }
    const tokens = this.#tokens + weightOf(chunk);
    if (tokens > this.#limit && this.#tokens > 0) return false;
    this.#tokens = tokens;
    this.#chunks.push(chunk);
    return true;
  }

  /** Ends the stream behind what is queued, with an error if there is one. The first end counts. */
  end(error?: EngineWireError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    if (this.#waiter !== undefined) this.#finish(this.#waiter);
    for (const waiter of this.#waiters ?? []) this.#finish(waiter);
    this.#waiter = undefined;
    this.#waiters = undefined;
  }

  /** Forgets what is queued. */
  clear(): void {
    this.#chunks = [];
    this.#head = 0;
    this.#tokens = 0;
  }

  /** The next chunk, the end, or the error; an error comes once, then the end. */
  next(stream: OutputStream): Promise<Result> {
    const chunk = this.#chunks[this.#head];
    if (chunk !== undefined) {
      this.#take(chunk);
      return Promise.resolve({ value: chunk, done: false });
    }
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject, stream };
      if (this.#ended) {
        this.#finish(waiter);
      } else if (this.#waiter === undefined) {
        this.#waiter = waiter;
      } else {
        this.#waiters ??= [];
        this.#waiters.push(waiter);
      }
    });
  }

  #take(chunk: OutputChunk): void {
    this.#tokens -= weightOf(chunk);
    this.#head++;
    if (this.#head === this.#chunks.length) {
      this.clear();
    } else if (this.#head === 1024) {
      // a reader that is never quite done must not keep all it has read
      this.#chunks = this.#chunks.slice(this.#head);
      this.#head = 0;
    }
  }

  #finish({ resolve, reject }: Waiter): void {
    const error = this.#error;
    this.#error = undefined;
    if (error === undefined) resolve(end);
    else reject(error);
  }
}

/** Chunks without tokens take place too. */
function weightOf({ outputIds }: OutputChunk): number {
  return outputIds.length || 1;
}
