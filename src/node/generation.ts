import type { OutputChunk, OutputStream } from "../transport/generation.ts";
import { OutputQueue } from "../transport/output-queue.ts";
import type { OutputSource } from "../transport/output-reader.ts";
import type { Outgoing } from "./send-queue.ts";

/** One request under way on one engine. */
export class Generation implements OutputSource {
  readonly rid: string;
  readonly engine: number;
  readonly queue: OutputQueue;
  /** Whether its stream has ended. */
  ended = false;
  /** Its message to the engine. */
  outgoing: Outgoing | undefined;
  /** Takes back the listener on its signal. */
  ignoreSignal: (() => void) | undefined;
  readonly #left: (generation: Generation) => void;

  constructor(rid: string, engine: number, bufferedTokens: number, left: (generation: Generation) => void) {
    this.rid = rid;
    this.engine = engine;
    this.queue = new OutputQueue(bufferedTokens);
    this.#left = left;
  }

  next(reader: OutputStream): Promise<IteratorResult<OutputChunk, undefined>> {
    return this.queue.next(reader);
  }

  leave(): void {
    this.#left(this);
  }
}
