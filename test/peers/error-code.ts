import { type EngineWireError, isEngineWireError } from "../../src/wire/index.ts";

/** What something fails with; anything but an error of this library is thrown on. */
export function errorOf(run: () => unknown): EngineWireError | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    if (isEngineWireError(error)) return error;
    throw error;
  }
}

/** The code of what something fails with. */
export function codeOf(run: () => unknown): string | undefined {
  return errorOf(run)?.code;
}
