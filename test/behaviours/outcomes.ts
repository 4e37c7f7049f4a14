import type { OutputChunk, OutputStream } from "../../src/index.ts";
import { type EngineWireError, isEngineWireError } from "../../src/wire/errors.ts";

/** What a promise fails with; an `EngineWireError`, or the test fails. */
export async function failureOf(promise: Promise<unknown>): Promise<EngineWireError> {
  try {
    await promise;
  } catch (error) {
    if (isEngineWireError(error)) return error;
    throw error;
  }
  throw new Error("expected a failure, and it succeeded");
}

/** Tries an assertion until it holds; after 10 seconds it fails as that does. */
export async function eventually(assertion: () => void | Promise<void>): Promise<void> {
  for (const until = performance.now() + 10_000; ; ) {
    try {
      await assertion();
      return;
    } catch (error) {
      if (performance.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
}

/** Reads a stream to its end: the tokens, the last chunk, and what it failed with. */
export async function read(stream: OutputStream): Promise<{ ids: number[]; last?: OutputChunk; error?: EngineWireError }> {
  const ids: number[] = [];
  let last: OutputChunk | undefined;
  try {
    for await (const chunk of stream) {
      ids.push(...chunk.outputIds);
      last = chunk;
    }
  } catch (error) {
    if (!isEngineWireError(error)) throw error;
    return { ids, ...(last && { last }), error };
  }
  return { ids, ...(last && { last }) };
}
