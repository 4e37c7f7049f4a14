import { encodeAny } from "../wire/index.ts";
import type { Load } from "./group.ts";
import type { OutputRow } from "./request.ts";

/** Encodes a `BatchTokenIDOutSlim`: the tag and 22 columns, those of logprobs and speculation empty. */
export function encodeOutputBatch(rows: readonly OutputRow[], engineIndex: number, load: Load): Uint8Array {
  return encodeAny([
    "BatchTokenIDOutSlim",
    rows.map(({ rid }) => rid),
    rows.map(({ outputIds }) => outputIds),
    rows.map(({ finish }) => finish?.type ?? ""),
    rows.map(({ promptTokens }) => promptTokens),
    rows.map(({ completionTokens }) => completionTokens),
    rows.map(({ cachedTokens }) => cachedTokens),
    rows.map(() => []),
    rows.map(() => []),
    engineIndex,
    load.numRunning,
    load.numWaiting,
    load.kvActivePages,
    load.kvTotalPages,
    rows.map(({ finish }) => finish),
    [],
    [],
    [],
    [],
    [],
    [],
    [],
    [],
  ]);
}
