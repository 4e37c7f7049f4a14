// for users
export type { BatchFault, BatchRule } from "./batch-faults.ts";
export { type RankState, type SimulatedEngine, startEngine, type WeightsState } from "./engine.ts";
export type { EngineEnd, EngineEvent } from "./events.ts";
export type { HandshakeFault } from "./handshake.ts";
export { engineCoreDead } from "./link.ts";
// for other libraries
export type { Alternatives, LogprobsWanted, PromptLogprobs, RowLogprobs } from "./logprobs.ts";
export { alternativesOf, logprobOf } from "./logprobs.ts";
export { type Answer, type MemoryPair, type MemoryPairOptions, memoryPair } from "./memory-pair.ts";
export type { EngineMessage } from "./messages.ts";
export type { SimulatedEngineOptions } from "./options.ts";
export type { ColumnCount } from "./output-batch.ts";
export type { Admission, Finish, OutputRow } from "./request.ts";
export { type DelayRule, type MessageRule, type Occasion, type Rules, ruleRefusal, type WrongReplyRule } from "./rules.ts";
export { positionOfToken, tokenOf, weightsOfToken } from "./tokens.ts";
