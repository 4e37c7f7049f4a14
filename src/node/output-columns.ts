import type { BatchTokenIDOutSlim } from "../messages.ts";
import type { OutputChunk, TokenLogprobs, TopLogprobs } from "../transport/generation.ts";
import { EngineWireError } from "../wire/errors.ts";

type Batch = BatchTokenIDOutSlim;
type Column = keyof Batch & string;

/** Columns with a value for every row. */
const full = ["outputIds", "finishedReasons", "promptTokens", "completionTokens", "cachedTokens"] as const satisfies readonly Column[];

/** Columns that are empty where nobody asked for them, or where an older engine has not got them. */
const optional = [
  "outputTokenLogprobsVal",
  "outputTokenLogprobsIdx",
  "finishReasonDetails",
  "specVerifyCt",
  "acceptDraftTokens",
  "inputTokenLogprobsVal",
  "inputTokenLogprobsIdx",
  "inputTopLogprobsVal",
  "inputTopLogprobsIdx",
  "outputTopLogprobsVal",
  "outputTopLogprobsIdx",
] as const satisfies readonly Column[];

/** Pairs of columns whose rows have the same length. */
const pairs = [
  ["outputTokenLogprobsVal", "outputTokenLogprobsIdx"],
  ["inputTokenLogprobsVal", "inputTokenLogprobsIdx"],
  ["inputTopLogprobsVal", "inputTopLogprobsIdx"],
  ["outputTopLogprobsVal", "outputTopLogprobsIdx"],
] as const satisfies readonly (readonly [Column, Column])[];

/** The request ids of a batch whose columns fit together. Throws `malformed` for any other: a row would get another one's values. */
export function requestIdsOf(batch: Batch): readonly string[] {
  const { rids } = batch;
  if (rids === null) throw unequal("rids", "a list", "nil");
  const rows = rids.length;
  for (const column of full) if (batch[column].length !== rows) throw unequal(column, `${rows} rows`, `${batch[column].length}`);
  for (const column of optional) {
    const { length } = batch[column];
    if (length !== 0 && length !== rows) throw unequal(column, `${rows} rows, or none`, `${length}`);
  }
  for (const [values, ids] of pairs) {
    if (batch[values].length !== batch[ids].length) throw unequal(ids, `${batch[values].length} rows`, `${batch[ids].length}`);
    for (let row = 0; row < batch[values].length; row++) {
      const expected = batch[values][row]?.length;
      const found = batch[ids][row]?.length;
      if (expected !== found) throw unequal(`${ids}[${row}]`, `${expected} items`, `${found}`);
    }
  }
  return rids;
}

/** What a batch says about the request of one row. */
export function chunkOf(batch: Batch, row: number): OutputChunk {
  return {
    outputIds: batch.outputIds[row] as readonly number[],
    finishReason: batch.finishedReasons[row] || null,
    finishDetails: batch.finishReasonDetails[row] ?? null,
    promptTokens: batch.promptTokens[row] as number,
    completionTokens: batch.completionTokens[row] as number,
    cachedTokens: batch.cachedTokens[row] as number,
    outputTokenLogprobs: logprobs(batch.outputTokenLogprobsVal[row], batch.outputTokenLogprobsIdx[row]),
    outputTopLogprobs: topLogprobs<never>(batch.outputTopLogprobsVal[row], batch.outputTopLogprobsIdx[row]),
    inputTokenLogprobs: logprobs(batch.inputTokenLogprobsVal[row], batch.inputTokenLogprobsIdx[row]),
    inputTopLogprobs: topLogprobs<null>(batch.inputTopLogprobsVal[row], batch.inputTopLogprobsIdx[row]),
    specVerifyCt: batch.specVerifyCt[row] ?? null,
    acceptDraftTokens: batch.acceptDraftTokens[row] ?? null,
  };
}

function logprobs<Logprob>(values: readonly Logprob[] | undefined, tokenIds: readonly number[] | undefined): TokenLogprobs<Logprob> | null {
  if (values === undefined || tokenIds === undefined || values.length === 0) return null;
  return { tokenIds, logprobs: values };
}

function topLogprobs<None>(
  values: readonly (readonly number[] | None)[] | undefined,
  tokenIds: readonly (readonly number[] | None)[] | undefined,
): TopLogprobs<None> | null {
  if (values === undefined || tokenIds === undefined || values.length === 0) return null;
  return { tokenIds, logprobs: values };
}

function unequal(column: string, expected: string, found: string): EngineWireError {
  return new EngineWireError("malformed", `BatchTokenIDOutSlim.${column}: expected ${expected}, got ${found}; the batch is refused`, {
    path: `BatchTokenIDOutSlim.${column}`,
    expected,
    found,
  });
}
