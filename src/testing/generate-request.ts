import { decodeTokenizedGenerateReqInput } from "../../generated/tokenspeed/decoders.ts";
import type { TokenizedGenerateReqInput } from "../../generated/tokenspeed/types.ts";
import { decodeAny, encodeAny, isEngineWireError } from "../wire/index.ts";

/** Where the sampling parameters stand in the array. */
const samplingParams = 5;

/**
 * Reads the frames of an ADD behind its type: the payload, then those of tensors. Throws what the decoder throws for what
 * the engine drops as malformed. It reads every 64-bit integer, a random seed say, so one that is no safe integer of
 * JavaScript counts as the nearest that is.
 */
export function readGenerateRequest(frames: readonly Uint8Array[]): TokenizedGenerateReqInput {
  try {
    return decodeTokenizedGenerateReqInput(frames);
  } catch (error) {
    const [payload, ...tensors] = frames;
    if (!isEngineWireError(error) || error.code !== "unsafe_integer" || payload === undefined) throw error;
    const fields = decodeAny(payload) as unknown[];
    const sampling = fields[samplingParams];
    const safe = fields.map(nearestSafe);
    if (Array.isArray(sampling)) safe[samplingParams] = sampling.map(nearestSafe);
    return decodeTokenizedGenerateReqInput([encodeAny(safe), ...tensors]);
  }
}

/** Leaves 64 bits without a sign as they are: the decoder has room for those where the wire does. */
function nearestSafe(value: unknown): unknown {
  if (typeof value !== "bigint" || value >= 2n ** 63n) return value;
  return value < 0n ? Number.MIN_SAFE_INTEGER : Number.MAX_SAFE_INTEGER;
}
