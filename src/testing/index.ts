// for users
export { type RankState, type SimulatedEngine, startEngine } from "./engine.ts";
export type { EngineEnd, EngineEvent } from "./events.ts";
export type { HandshakeFault } from "./handshake.ts";
export { engineCoreDead } from "./link.ts";
export { type Answer, type MemoryPair, type MemoryPairOptions, memoryPair } from "./memory-pair.ts";
// for other libraries
export type { EngineMessage } from "./messages.ts";
export type { SimulatedEngineOptions } from "./options.ts";
export type { Admission, Finish, OutputRow } from "./request.ts";
export { type DelayRule, type MessageRule, type Occasion, type Rules, ruleRefusal, type WrongReplyRule } from "./rules.ts";
