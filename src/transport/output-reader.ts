import type { OutputChunk, OutputStream } from "./generation.ts";
import type { OutputQueue } from "./output-queue.ts";

/** What a reader reads from and tells that it leaves. It must not hold the reader, or a dropped one is never noticed. */
export interface OutputSource {
  readonly rid: string;
  readonly engine?: number;
  readonly queue: OutputQueue;
  /** The reader wants no more. */
  leave(): void;
}

/** The stream that a caller holds. */
export class OutputReader implements OutputStream {
  readonly rid: string;
  declare readonly engine?: number;
  readonly #source: OutputSource;

  constructor(source: OutputSource) {
    this.rid = source.rid;
    if (source.engine !== undefined) this.engine = source.engine;
    this.#source = source;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<OutputChunk, undefined>> {
    return this.#source.queue.next(this);
  }

  async return(): Promise<IteratorResult<OutputChunk, undefined>> {
    this.#source.leave();
    return { value: undefined, done: true };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#source.leave();
  }
}
