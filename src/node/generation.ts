import { OutputQueue } from "../transport/output-queue.ts";
import type { OutputSource } from "../transport/output-reader.ts";
import type { EngineWireError } from "../wire/errors.ts";
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

  leave(): void {
    this.#left(this);
  }
}

/** A request that was refused before it had an engine: there is only its error to read. */
export class RefusedGeneration implements OutputSource {
  readonly rid: string;
  readonly queue = new OutputQueue(1);

  constructor(rid: string, error: EngineWireError) {
    this.rid = rid;
    this.queue.end(error);
  }

  leave(): void {
    this.queue.clear();
  }
}
