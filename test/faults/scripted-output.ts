// What a scripted engine needs to generate: it reads requests and writes batches, right or wrong.
import {
  type BatchTokenIDOutSlimInit,
  decodeAbortRids,
  decodeTokenizedGenerateReqInput,
  encodeBatchTokenIDOutSlim,
  type TokenizedGenerateReqInput,
} from "../../src/messages.ts";
import type { ScriptedEngine } from "./scripted-engine.ts";

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

/** The next request to generate that an engine receives. */
export async function receiveAdd(engine: ScriptedEngine): Promise<TokenizedGenerateReqInput> {
  const [type, ...frames] = await engine.receiveFrames();
  if (type?.[0] !== 0) throw new Error(`expected ADD, got a message of type ${type?.[0]}`);
  return decodeTokenizedGenerateReqInput(frames as [Uint8Array, ...Uint8Array[]]);
}

/** The ids of the next abort that an engine receives. */
export async function receiveAbort(engine: ScriptedEngine): Promise<readonly string[]> {
  const [type, payload] = await engine.receiveFrames();
  if (type?.[0] !== 1 || payload === undefined) throw new Error(`expected ABORT, got a message of type ${type?.[0]}`);
  return decodeAbortRids(payload);
}
