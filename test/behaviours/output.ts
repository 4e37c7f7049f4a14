import { type BatchTokenIDOutSlimInit, encodeBatchTokenIDOutSlim } from "../../src/messages.ts";

/** A row of a batch. */
export interface Row {
  readonly rid: string;
  readonly ids: readonly number[];
  readonly finish?: string;
}

/** A batch of these rows, with columns in place of the right ones. */
export function batchOf(rows: readonly Row[], columns: Partial<BatchTokenIDOutSlimInit> = {}): Uint8Array {
  return encodeBatchTokenIDOutSlim({
    rids: rows.map(({ rid }) => rid),
    outputIds: rows.map(({ ids }) => ids),
    finishedReasons: rows.map(({ finish = "" }) => finish),
    promptTokens: rows.map(() => 3),
    completionTokens: rows.map(({ ids }) => ids.length),
    cachedTokens: rows.map(() => 0),
    outputTokenLogprobsVal: rows.map(() => []),
    outputTokenLogprobsIdx: rows.map(() => []),
    ...columns,
  });
}
