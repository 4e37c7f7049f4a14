import type { SamplingParams, TokenizedGenerateReqInput } from "../../generated/tokenspeed/types.ts";
import { type LogprobsWanted, tokenIds } from "./logprobs.ts";
import type { EngineMessage } from "./messages.ts";

/** Room the engine keeps free of prompt, for output and its own bookkeeping. */
const promptMargin = 6;
/** Stop tokens the sampler's table holds. */
const maxStopTokenIds = 16;
/** Token ids the model has. */
const vocabulary = 100_000;
/** Temperatures below this are greedy, negative ones included, and replace the top-k. */
const greedyBelow = 1e-6;
/** From here on a top-k is refused; -1 turns it off, and so does what the real engine and the gateway make of -1. */
const topKLimit = 128;
const topKOff = 2 ** 30;
/** Most alternatives of a token that can be asked for. */
const maxTopLogprobs = 20;

/** What admission depends on. */
export interface AdmissionLimits {
  /** Prompt and output together, in tokens. */
  readonly maxModelLen: number;
  /** Logprobs may be asked for. */
  readonly outputLogprobs: boolean;
}

/**
 * What becomes of a generate request: admitted with its budget clamped to the context, or refused with a reason its
 * client gets. `undefined` for one without a single request id, which nobody could be told of.
 */
export function admit(request: TokenizedGenerateReqInput, limits: AdmissionLimits): EngineMessage | undefined {
  const { rid, samplingParams: sampling } = request;
  if (typeof rid !== "string") return undefined;
  const prompt = request.inputIds ?? [];
  const stopTokenIds = sampling.ignoreEos ? [] : [...new Set(sampling.stopTokenIds)].sort((a, b) => a - b);
  const message = request.validationError ?? refusal(request, limits) ?? lateRefusal(request, stopTokenIds);
  if (message !== undefined) return { kind: "refused", rid, promptTokens: prompt.length, message };
  const room = limits.maxModelLen - prompt.length - 2;
  return {
    kind: "add",
    admission: {
      rid,
      prompt,
      maxNewTokens: Math.min(sampling.maxNewTokens ?? Number.POSITIVE_INFINITY, room),
      minNewTokens: sampling.minNewTokens,
      stopTokenIds,
      stream: request.stream,
      streamInterval: sampling.streamInterval,
      logprobs: request.returnLogprob ? logprobsWanted(request, prompt.length - 1) : undefined,
    },
  };
}

/** The default start is the last position, whose token's successor is the first output: nothing of the prompt is scored. */
function logprobsWanted({ logprobStartLen, topLogprobsNum }: TokenizedGenerateReqInput, last: number): LogprobsWanted {
  return { start: logprobStartLen < 0 ? last : Math.min(logprobStartLen, last), top: topLogprobsNum };
}

function refusal(request: TokenizedGenerateReqInput, { maxModelLen, outputLogprobs }: AdmissionLimits): string | undefined {
  const { inputIds, returnLogprob, samplingParams: sampling } = request;
  const longestPrompt = maxModelLen - promptMargin;
  if (sampling.n !== 1) {
    return `n=${sampling.n} is not supported on the msgpack wire; the frontend must fan out n > 1 itself`;
  }
  const unsupported = unsupportedOf(request);
  if (unsupported !== undefined) return unsupported;
  if (inputIds === null) return "a request needs prompt token ids";
  if (inputIds.length > longestPrompt) {
    return `the prompt has ${inputIds.length} tokens; this engine admits at most ${longestPrompt}`;
  }
  if (returnLogprob) {
    if (!outputLogprobs) return "logprobs were requested but the server was started without --enable-output-logprobs";
    const reason = logprobRefusal(request, inputIds);
    if (reason !== undefined) return reason;
  }
  if ([sampling.jsonSchema, sampling.regex, sampling.ebnf, sampling.structuralTag].some((grammar) => grammar !== null)) {
    return "Grammar-based generation (json_schema, regex, ebnf, structural_tag) is not supported when the server is launched with --grammar-backend none";
  }
  if (stopStringsOf(sampling).length > 0) {
    return "stop strings are not matched on the msgpack wire; the frontend matches them and sends stop_token_ids only";
  }
  return samplingRefusal(sampling);
}

/** Features that this engine host does not have, in the order the engine looks at them. */
function unsupportedOf(request: TokenizedGenerateReqInput): string | undefined {
  if (request.multimodalInputs !== null) return "multimodal inputs need a multimodal model (not --language-model-only)";
  if (request.inputEmbeds !== null) return "input embeddings are not supported by this engine host";
  if (request.customLogitProcessor !== null) return "custom logit processors are not supported by this engine host";
  return request.returnHiddenStates ? "hidden states are not supported by this engine host" : undefined;
}

/** A sender that normalized its parameters has them in another field. */
function stopStringsOf({ isNormalized, stop, stopStrs }: SamplingParams): readonly string[] {
  const given = (isNormalized ? stopStrs : stop) ?? [];
  return typeof given === "string" ? [given] : given;
}

function logprobRefusal(request: TokenizedGenerateReqInput, prompt: readonly number[]): string | undefined {
  const { topLogprobsNum: top, logprobStartLen: start, samplingParams: sampling } = request;
  if (top !== 0 && !(top > 0 && top <= maxTopLogprobs)) return `top_logprobs_num must be between 1 and ${maxTopLogprobs}, got ${top}.`;
  if (top > 0 && (sampling.maxNewTokens ?? 0) > 1) {
    return "top_logprobs_num > 0 needs max_new_tokens <= 1: top-k logprobs are computed for the prompt and the token a prefill samples, not for decode steps.";
  }
  if ((request.tokenIdsLogprob ?? []).length > 0) return "token_ids_logprob is not supported yet";
  if (start < -1) return `logprob_start_len must be -1 or >= 0, got ${start}.`;
  if (start >= prompt.length) return `logprob_start_len (${start}) must be smaller than the prompt length (${prompt.length}).`;
  // here every token id is the model's: a request may well have outputs in its prompt, which lie beyond the vocabulary
  if (start < 0 || start >= prompt.length - 1 || prompt.every((token) => token >= 0)) return undefined;
  return `prompt logprobs need every prompt token id inside the vocabulary [0, ${tokenIds}); input_ids contains one outside it.`;
}

function lateRefusal({ sessionParams }: TokenizedGenerateReqInput, stopTokenIds: readonly number[]): string | undefined {
  const sessionId = sessionParams?.id ?? null;
  if (sessionId !== null) return `session id ${sessionId} does not exist`;
  if (stopTokenIds.length <= maxStopTokenIds) return undefined;
  return `${stopTokenIds.length} stop token ids exceed the limit of ${maxStopTokenIds}, which includes the model's 0 EOS ids; pass at most ${maxStopTokenIds} other stop_token_ids`;
}

function samplingRefusal(sampling: SamplingParams): string | undefined {
  const { topP, minP, frequencyPenalty, presencePenalty, repetitionPenalty, minNewTokens, maxNewTokens, logprobs } = sampling;
  const greedy = !sampling.isNormalized && sampling.temperature < greedyBelow;
  const topK = greedy ? 1 : sampling.topK;
  if (!greedy && sampling.temperature < 0) return `temperature must be non-negative, got ${sampling.temperature}.`;
  if (!(topP > 0 && topP <= 1)) return `top_p must be in (0, 1], got ${topP}.`;
  if (!(minP >= 0 && minP <= 1)) return `min_p must be in [0, 1], got ${minP}.`;
  if (topK < -1 || topK === 0) return `top_k must be -1 (disable), or at least 1, got ${topK}.`;
  if (topK >= topKLimit && topK !== topKOff) return `top_k must be < ${topKLimit} (fused kernel limit) or -1 (disable), got ${topK}.`;
  if (!(Math.abs(frequencyPenalty) <= 2)) return `frequency_penalty must be in [-2, 2], got ${frequencyPenalty}.`;
  if (!(Math.abs(presencePenalty) <= 2)) return `presence_penalty must be in [-2, 2], got ${presencePenalty}.`;
  if (!(repetitionPenalty > 0 && repetitionPenalty <= 2)) return `repetition_penalty must be in (0, 2], got ${repetitionPenalty}.`;
  if (minNewTokens < 0) return `min_new_tokens must be in (0, max_new_tokens], got ${minNewTokens}.`;
  if (maxNewTokens !== null && maxNewTokens < 0) return `max_new_tokens must be at least 0, got ${maxNewTokens}.`;
  if (maxNewTokens !== null && minNewTokens > maxNewTokens) {
    return `min_new_tokens must be in (0, max_new_tokens(${maxNewTokens})], got ${minNewTokens}.`;
  }
  const biased = keysOf(sampling.logitBias ?? {}).find(
    (token) => !/^[+-]?\d+$/.test(token) || Number(token) < 0 || Number(token) >= vocabulary,
  );
  if (biased !== undefined) return `logit_bias must has keys in [0, ${vocabulary - 1}], got ${biased}.`;
  if (logprobs !== null && logprobs !== 0) return `logprobs=${logprobs} is not supported; use logprobs=0 (the sampled token's logprob).`;
  return undefined;
}

/** A map's keys: one whose keys look like array indexes is a `Map`. */
function keysOf(map: object): string[] {
  return map instanceof Map ? [...map.keys()].map(String) : Object.keys(map);
}
