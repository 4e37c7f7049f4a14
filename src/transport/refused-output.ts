import type { EngineWireError } from "../wire/errors.ts";
import type { OutputChunk, OutputStream } from "./generation.ts";
import { OutputQueue } from "./output-queue.ts";
import type { OutputSource } from "./output-reader.ts";

/** What stands behind the stream of a request that was not sent: there is only its error to read. */
export class RefusedOutput implements OutputSource {
  readonly rid: string;
  readonly engine = undefined;
  readonly #queue = new OutputQueue(1);

  constructor(rid: string, error: EngineWireError) {
    this.rid = rid;
    this.#queue.end(error);
  }

  next(reader: OutputStream): Promise<IteratorResult<OutputChunk, undefined>> {
    return this.#queue.next(reader);
  }

  leave(): void {}
}
