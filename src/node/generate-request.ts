import { type EngineCoreReadyResponse, encodeTokenizedGenerateReqInput } from "../messages.ts";
import type { GenerateOptions, GenerateRequest } from "../transport/generation.ts";
import { checkSignal } from "../transport/timeouts.ts";
import { EngineWireError } from "../wire/errors.ts";

const options: Readonly<Record<keyof GenerateOptions, true>> = { signal: true, engine: true, bufferedTokens: true };
const mostTokens = 2 ** 31 - 1;
const defaultBufferedTokens = 16_384;
/** Tokens of the context that an engine keeps for itself. */
const contextMargin = 2;

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

/**
 * Encodes a request as the frames of an ADD behind its type. Throws the codec's codes, and `refused` for what would end the engine's
 * process: an empty prompt, and a request that its whole cache could not hold.
 */
export function encodeRequest(request: GenerateRequest, rid: string, registration: EngineCoreReadyResponse): readonly Uint8Array[] {
  const frames = encodeTokenizedGenerateReqInput({ ...request, rid, stream: request.stream ?? true });
  const prompt = request.inputIds?.length ?? 0;
  if (prompt === 0) throw refused("inputIds", "an empty prompt ends the process of the engine; give at least one token id");
  // pages for the prompt and the whole budget are reserved when the engine admits it
  const budget = Math.min(
    Number(request.samplingParams.maxNewTokens ?? Number.POSITIVE_INFINITY),
    registration.maxModelLen - prompt - contextMargin,
  );
  const cache = cacheTokens(registration);
  if (budget > 0 && cache > 0 && prompt + budget > cache) {
    const why = `prompt and budget are ${prompt} + ${budget} tokens, and the whole cache of the engine holds ${cache}`;
    throw refused("samplingParams.maxNewTokens", `${why}, so that its process would end; give a smaller maxNewTokens`);
  }
  return frames;
}

/** Tokens that an engine's cache holds; 0 where it does not say. */
function cacheTokens({ kvCacheSizeTokens, numGpuBlocks, prefixGranularity }: EngineCoreReadyResponse): number {
  return kvCacheSizeTokens ?? numGpuBlocks * prefixGranularity;
}

function invalid(path: string, why: string): EngineWireError {
  return new EngineWireError("invalid_argument", why, { path });
}

function refused(field: string, why: string): EngineWireError {
  return new EngineWireError("refused", `the request was not sent: ${why}`, { path: `TokenizedGenerateReqInput.${field}` });
}
