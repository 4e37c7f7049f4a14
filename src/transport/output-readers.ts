import { asEngineWireError } from "../wire/errors.ts";
import { checkGenerateOptions, requestIdOf } from "./generate-options.ts";
import type { GenerateOptions, GenerateRequest, OutputStream } from "./generation.ts";
import { OutputReader, type OutputSource } from "./output-reader.ts";
import { RefusedOutput } from "./refused-output.ts";

/** Hands out streams, and has a source left whose stream nobody holds any more. */
export class OutputReaders {
  readonly #dropped = new FinalizationRegistry<OutputSource>((source) => source.leave());
  readonly #nextId: () => string;

  /** `nextId` makes the id of a request that has none. */
  constructor(nextId: () => string) {
    this.#nextId = nextId;
  }

  /** The stream of what `start` sends. Whatever is wrong with the request is read from it. */
  open(request: GenerateRequest, options: GenerateOptions, start: (rid: string, bufferedTokens: number) => OutputSource): OutputStream {
    let rid = "";
    try {
      const bufferedTokens = checkGenerateOptions(options);
      rid = requestIdOf(request, this.#nextId);
      const source = start(rid, bufferedTokens);
      const reader = new OutputReader(source);
      this.#dropped.register(reader, source, source);
      return reader;
    } catch (error) {
      return new OutputReader(new RefusedOutput(rid, asEngineWireError(error)));
    }
  }

  /** A source has ended: its stream may be dropped. */
  ended(source: OutputSource): void {
    this.#dropped.unregister(source);
  }
}
