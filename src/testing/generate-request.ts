import { decodeAny } from "../wire/index.ts";

/** What a generate request says that this engine looks at; the rest is only checked to be there. */
export interface GenerateRequest {
  readonly rid: unknown;
  readonly inputIds: readonly number[] | null;
  readonly returnLogprob: boolean;
  /** The first prompt position to score; -1 for none. */
  readonly logprobStartLen: number;
  readonly topLogprobsNum: number;
  /** It asks for the logprobs of certain token ids. */
  readonly wantsTokenIdsLogprob: boolean;
  readonly stream: boolean;
  /** Features it asks for that this engine host does not have, in the order the engine looks at them. */
  readonly unsupported: string | undefined;
  readonly sessionId: string | undefined;
  readonly validationError: string | null;
  readonly sampling: SamplingParams;
}

/** The sampling parameters that are checked or used. */
export interface SamplingParams {
  readonly maxNewTokens: number | null;
  readonly stopStrings: readonly string[];
  readonly stopTokenIds: readonly number[];
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly repetitionPenalty: number;
  readonly minNewTokens: number;
  readonly constrained: boolean;
  readonly ignoreEos: boolean;
  readonly streamInterval: number | null;
  /** The token ids that a bias is given for. */
  readonly logitBias: readonly string[];
  readonly logprobs: number | null;
  readonly n: number;
}

const tag = "TokenizedGenerateReqInput";
/** Temperatures below this are greedy, negative ones included, and replace the top-k. */
const greedyBelow = 1e-6;

/** Elements of a positional struct, read with defaults for those that are missing at the end. */
class Fields {
  readonly #elements: readonly unknown[];

  constructor(value: unknown, least: number) {
    if (!Array.isArray(value) || value.length < least) throw new TypeError(`expected an array of at least ${least} elements`);
    this.#elements = value;
  }

  at<T>(position: number, what: string, accepts: (value: unknown) => value is T, missing: T): T {
    const value = position < this.#elements.length ? this.#elements[position] : missing;
    if (!accepts(value)) throw new TypeError(`element ${position} is not ${what}`);
    return value;
  }
}

const isBool = (value: unknown): value is boolean => typeof value === "boolean";
const isNumber = (value: unknown): value is number => typeof value === "number";
const isInteger = (value: unknown): value is number => Number.isSafeInteger(value);
const isIntegers = (value: unknown): value is number[] => Array.isArray(value) && value.every(isInteger);
const isStrings = (value: unknown): value is string[] => Array.isArray(value) && value.every((item) => typeof item === "string");
const isText = (value: unknown): value is string => typeof value === "string";
const isMap = (value: unknown): value is object => typeof value === "object" && value !== null && !Array.isArray(value);
const isAnything = (_: unknown): _ is unknown => true;

function orNull<T>(accepts: (value: unknown) => value is T): (value: unknown) => value is T | null {
  return (value): value is T | null => value === null || accepts(value);
}

/** A map's keys: one whose keys look like array indexes is a `Map`. */
function keysOf(map: object): string[] {
  return map instanceof Map ? [...map.keys()].map(String) : Object.keys(map);
}

function isTextOrTexts(value: unknown): value is string | string[] {
  return isText(value) || isStrings(value);
}

/** Reads the payload of an ADD. Throws for what the engine drops as malformed. */
export function readGenerateRequest(payload: Uint8Array): GenerateRequest {
  const fields = new Fields(decodeAny(payload), 6);
  if (fields.at(0, "a tag", isText, "") !== tag) throw new TypeError(`the tag is not ${tag}`);
  fields.at(2, "text", orNull(isText), null);
  fields.at(3, "text", orNull(isText), null);
  const session = fields.at<unknown>(12, "anything", isAnything, null);
  return {
    rid: fields.at(1, "a request id", orNull(isTextOrTexts), null),
    inputIds: fields.at(4, "a list of integers", orNull(isIntegers), null),
    returnLogprob: fields.at(6, "a bool", isBool, false),
    logprobStartLen: fields.at(7, "an integer", isInteger, -1),
    topLogprobsNum: fields.at(8, "an integer", isInteger, 0),
    wantsTokenIdsLogprob: (fields.at(9, "a list of integers", orNull(isIntegers), null) ?? []).length > 0,
    stream: fields.at(10, "a bool", isBool, false),
    unsupported: unsupportedOf(fields),
    sessionId: Array.isArray(session) && isText(session[0]) ? session[0] : undefined,
    validationError: fields.at(23, "text", orNull(isText), null),
    sampling: readSampling(fields.at<unknown>(5, "anything", isAnything, null)),
  };
}

function unsupportedOf(fields: Fields): string | undefined {
  const given = (position: number) => fields.at<unknown>(position, "anything", isAnything, null) !== null;
  if (given(22)) return "multimodal inputs need a multimodal model (not --language-model-only)";
  if (given(11)) return "input embeddings are not supported by this engine host";
  if (given(13)) return "custom logit processors are not supported by this engine host";
  if (fields.at(14, "a bool", isBool, false)) return "hidden states are not supported by this engine host";
  return undefined;
}

function readSampling(value: unknown): SamplingParams {
  const fields = new Fields(value, 0);
  const stop = fields.at(1, "text", orNull(isTextOrTexts), null) ?? [];
  const topK = fields.at(5, "an integer", isInteger, -1);
  const greedy = fields.at(3, "a number", isNumber, 1) < greedyBelow;
  return {
    maxNewTokens: fields.at(0, "an integer", orNull(isInteger), null),
    stopStrings: typeof stop === "string" ? [stop] : stop,
    stopTokenIds: fields.at(2, "a list of integers", orNull(isIntegers), null) ?? [],
    topP: fields.at(4, "a number", isNumber, 1),
    topK: greedy ? 1 : topK,
    minP: fields.at(6, "a number", isNumber, 0),
    frequencyPenalty: fields.at(7, "a number", isNumber, 0),
    presencePenalty: fields.at(8, "a number", isNumber, 0),
    repetitionPenalty: fields.at(9, "a number", isNumber, 1),
    minNewTokens: fields.at(10, "an integer", isInteger, 0),
    constrained: [11, 12, 13, 14].some((position) => fields.at(position, "text", orNull(isText), null) !== null),
    ignoreEos: fields.at(15, "a bool", isBool, false),
    streamInterval: fields.at(21, "an integer", orNull(isInteger), null),
    logitBias: keysOf(fields.at(22, "a map", orNull(isMap), null) ?? {}),
    logprobs: fields.at(24, "an integer", orNull(isInteger), null),
    n: fields.at(25, "an integer", isInteger, 1),
  };
}
