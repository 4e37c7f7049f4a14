import { type EngineCoreReadyResponse, encodeTokenizedGenerateReqInput } from "../messages.ts";
import type { GenerateRequest } from "../transport/generation.ts";
import { EngineWireError } from "../wire/errors.ts";

/** Tokens of the context that an engine keeps for itself. */
const contextMargin = 2;

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

function refused(field: string, why: string): EngineWireError {
  return new EngineWireError("refused", `the request was not sent: ${why}`, { path: `TokenizedGenerateReqInput.${field}` });
}
