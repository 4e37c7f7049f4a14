import { encodeBatchTokenIDOutSlim } from "../../src/messages.ts";

/** Ids as a client of this library makes them. */
export function requestIds(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `6ad-${index.toString(36).padStart(8, "0")}`);
}

/** A batch with one token for each request, all columns of release 0.1.0 there. */
export function outputBatch(rids: readonly string[], finish = ""): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(
    encodeBatchTokenIDOutSlim({
      rids,
      outputIds: rids.map((_, index) => [1000 + 37 * index]),
      finishedReasons: rids.map(() => finish),
      promptTokens: rids.map((_, index) => 100 + index),
      completionTokens: rids.map((_, index) => 1 + index),
      cachedTokens: rids.map(() => 0),
      outputTokenLogprobsVal: rids.map(() => []),
      outputTokenLogprobsIdx: rids.map(() => []),
      engineIndex: 0,
      numRunning: rids.length,
      numWaiting: 0,
      kvActivePages: 4000,
      kvTotalPages: 8192,
      finishReasonDetails: rids.map(() => null),
    }),
  );
}
