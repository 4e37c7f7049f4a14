import { dropTrailing } from "../wire/drop-trailing.ts";
import { encodeAny, float } from "../wire/index.ts";
import type { SentBatch } from "./batch-faults.ts";
import type { Load } from "./group.ts";
import type { OutputRow } from "./request.ts";

/** Columns of an output batch in the releases there were. */
export const columnCounts = [8, 9, 13, 22] as const;

/** How many columns an output batch has: 8 until its engine index came, then 9, 13 with the load, 22 in 0.1.0. */
export type ColumnCount = (typeof columnCounts)[number];

const floats = (values: readonly number[]) => values.map(float);
const orNull =
  <T, R>(convert: (value: T) => R) =>
  (value: T | null) =>
    value === null ? null : convert(value);

/** A column with an entry for each row, or an empty one when no row has anything for it. */
function column<T>(rows: readonly OutputRow[], entryOf: (row: OutputRow) => readonly T[] | undefined): (readonly T[])[] {
  return rows.some((row) => entryOf(row)?.length) ? rows.map((row) => entryOf(row) ?? []) : [];
}

/** Encodes a `BatchTokenIDOutSlim`, in full or as an older engine's, which stops after fewer columns. */
export function encodeOutputBatch(batch: SentBatch & { readonly load: Load }, engineIndex: number, columns: ColumnCount): Uint8Array {
  const { rows, unequal, load } = batch;
  const scored = rows.filter(({ logprobs }) => logprobs !== undefined);
  const encoded = encodeAny([
    "BatchTokenIDOutSlim",
    rows.map(({ rid }) => rid),
    rows.map(({ outputIds }) => outputIds),
    rows.map(({ finish }) => finish?.type ?? ""),
    (unequal ? rows.slice(0, -1) : rows).map(({ promptTokens }) => promptTokens),
    rows.map(({ completionTokens }) => completionTokens),
    rows.map(({ cachedTokens }) => cachedTokens),
    rows.map(({ logprobs }) => floats(logprobs?.output ?? [])),
    rows.map(({ logprobs, outputIds }) => (logprobs === undefined ? [] : outputIds)),
    engineIndex,
    load.numRunning,
    load.numWaiting,
    load.kvActivePages,
    load.kvTotalPages,
    rows.map(({ finish }) => finish),
    [],
    [],
    ...(scored.length === 0
      ? [[], [], [], [], [], []]
      : [
          column(rows, ({ logprobs }) => logprobs?.input?.values.map(orNull(float))),
          column(rows, ({ logprobs }) => logprobs?.input?.ids),
          column(rows, ({ logprobs }) => logprobs?.input?.top?.values.map(orNull(floats))),
          column(rows, ({ logprobs }) => logprobs?.input?.top?.ids),
          column(rows, ({ logprobs }) => logprobs?.outputTop?.values.map(floats)),
          column(rows, ({ logprobs }) => logprobs?.outputTop?.ids),
        ]),
  ]);
  return columns === 22 ? encoded : dropTrailing(encoded, 22 - columns);
}
