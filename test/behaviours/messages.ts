// Requests and replies that behaviours speak of.
import type { GenerateRequest } from "../../src/index.ts";

/** A request to generate that nobody refuses. */
export const request: GenerateRequest = { inputIds: [1, 2, 3], samplingParams: { maxNewTokens: 8 } };

export const sleeping = { $tag: "IsSleepingReqInput" } as const;
export const flushing = { $tag: "FlushCacheReqInput" } as const;
export const isSleeping = (value: boolean) => ({ $tag: "IsSleepingReqOutput", isSleeping: value }) as const;
export const flushed = { $tag: "FlushCacheReqOutput", success: true } as const;
export const paused = (success: boolean, message = "") => ({ $tag: "PauseSchedulerReqOutput", success, message }) as const;
