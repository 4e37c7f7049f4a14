import { encodeBatchTokenIDOutSlim } from "../../generated/tokenspeed/encoders.ts";
import type { BatchTokenIDOutSlimInit } from "../../generated/tokenspeed/types.ts";
import { dropTrailing } from "../wire/drop-trailing.ts";
import type { SentBatch } from "./batch-faults.ts";
import type { Load } from "./group.ts";
import type { OutputRow } from "./request.ts";

/** How many columns an output batch has: 8 until its engine index came, then 9, 13 with the load, 22 in 0.1.0. */
export type ColumnCount = 8 | 9 | 13 | 22;

/** Every count of columns there was. */
export const columnCounts: readonly ColumnCount[] = [8, 9, 13, 22];

type Init = BatchTokenIDOutSlimInit;
/** Columns that are in a batch only if a row of it has something for them. */
type Scores = Pick<
  Init,
  | "inputTokenLogprobsVal"
  | "inputTokenLogprobsIdx"
  | "inputTopLogprobsVal"
  | "inputTopLogprobsIdx"
  | "outputTopLogprobsVal"
  | "outputTopLogprobsIdx"
>;

/** A column with an entry for each row, or an empty one when no row has anything for it. */
function column<T>(rows: readonly OutputRow[], entryOf: (row: OutputRow) => readonly T[] | undefined): (readonly T[])[] {
  const entries = rows.map((row) => entryOf(row) ?? []);
  return entries.some((entry) => entry.length > 0) ? entries : [];
}

function scoresOf(rows: readonly OutputRow[]): Scores {
  return {
    inputTokenLogprobsVal: column(rows, ({ logprobs }) => logprobs?.input?.values),
    inputTokenLogprobsIdx: column(rows, ({ logprobs }) => logprobs?.input?.ids),
    inputTopLogprobsVal: column(rows, ({ logprobs }) => logprobs?.input?.top?.values),
    inputTopLogprobsIdx: column(rows, ({ logprobs }) => logprobs?.input?.top?.ids),
    outputTopLogprobsVal: column(rows, ({ logprobs }) => logprobs?.outputTop?.values),
    outputTopLogprobsIdx: column(rows, ({ logprobs }) => logprobs?.outputTop?.ids),
  };
}

/** Encodes a `BatchTokenIDOutSlim`, in full or as an older engine's, which stops after fewer columns. */
export function encodeOutputBatch(batch: SentBatch & { readonly load: Load }, engineIndex: number, columns: ColumnCount): Uint8Array {
  const { rows, unequal, load } = batch;
  const none: readonly number[] = [];
  const encoded = encodeBatchTokenIDOutSlim({
    rids: rows.map(({ rid }) => rid),
    outputIds: rows.map(({ outputIds }) => outputIds),
    finishedReasons: rows.map(({ finish }) => finish?.type ?? ""),
    promptTokens: (unequal ? rows.slice(0, -1) : rows).map(({ promptTokens }) => promptTokens),
    completionTokens: rows.map(({ completionTokens }) => completionTokens),
    cachedTokens: rows.map(({ cachedTokens }) => cachedTokens),
    outputTokenLogprobsVal: rows.map(({ logprobs }) => logprobs?.output ?? none),
    outputTokenLogprobsIdx: rows.map(({ logprobs, outputIds }) => (logprobs === undefined ? none : outputIds)),
    engineIndex,
    ...load,
    finishReasonDetails: rows.map(({ finish }) => finish),
    ...(rows.some(({ logprobs }) => logprobs !== undefined) ? scoresOf(rows) : {}),
  });
  return columns === 22 ? encoded : dropTrailing(encoded, 22 - columns);
}
