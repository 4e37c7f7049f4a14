import type { OutputChunk, OutputStream } from "./generation.ts";

/** What a reader reads from and tells that it leaves. It must not hold the reader, or a dropped one is never noticed. */
export interface OutputSource {
  readonly rid: string;
  readonly engine: number | undefined;
  /** The next chunk, the end, or the error. */
  next(reader: OutputStream): Promise<IteratorResult<OutputChunk, undefined>>;
  /** The reader wants no more. */
  leave(): void;
}

/** The stream that a caller holds. */
export class OutputReader implements OutputStream {
  readonly rid: string;
  readonly #source: OutputSource;

  constructor(source: OutputSource) {
    this.rid = source.rid;
    this.#source = source;
  }

  get engine(): number | undefined {
    return this.#source.engine;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<OutputChunk, undefined>> {
    return this.#source.next(this);
  }

  async return(): Promise<IteratorResult<OutputChunk, undefined>> {
    this.#source.leave();
    return { value: undefined, done: true };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#source.leave();
  }
}
