import { EngineWireError } from "../wire/errors.ts";
import type { GenerateOptions, GenerateRequest } from "./generation.ts";
import { checkSignal } from "./timeouts.ts";

const options: Readonly<Record<keyof GenerateOptions, true>> = { signal: true, engine: true, bufferedTokens: true };
const mostTokens = 2 ** 31 - 1;
const defaultBufferedTokens = 16_384;

/** Checks options of `generate` and fills in the bound of the buffer. Throws `invalid_argument`. */
export function checkGenerateOptions(given: GenerateOptions): number {
  if (typeof given !== "object" || given === null) throw invalid("options", "the options of generate must be an object");
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(options, name)) continue;
    throw invalid(name, `generate has no option "${name}"; it has ${Object.keys(options).join(", ")}`);
  }
  if (given.signal !== undefined) checkSignal(given.signal);
  const { bufferedTokens = defaultBufferedTokens } = given;
  if (Number.isInteger(bufferedTokens) && bufferedTokens >= 1 && bufferedTokens <= mostTokens) return bufferedTokens;
  throw invalid("bufferedTokens", `bufferedTokens must be an integer from 1 to ${mostTokens}, got ${String(bufferedTokens)}`);
}

/** The id of a request, or one from `next`. Throws `invalid_argument` for none that an engine could tell apart. */
export function requestIdOf(request: GenerateRequest, next: () => string): string {
  if (typeof request !== "object" || request === null) throw invalid("request", "generate takes an object of the request's fields");
  // an empty id in an abort would mean every request to some engines
  if (request.rid === "") throw invalid("rid", "rid is empty; leave it out to be given one");
  if (request.rid !== undefined && typeof request.rid !== "string")
    throw invalid("rid", `rid must be one string, got ${typeof request.rid}`);
  return request.rid ?? next();
}

function invalid(path: string, why: string): EngineWireError {
  return new EngineWireError("invalid_argument", why, { path });
}
