// What a scripted engine needs to generate: it reads requests and aborts.
import { decodeAbortRids, decodeTokenizedGenerateReqInput, type TokenizedGenerateReqInput } from "../../src/messages.ts";
import type { ScriptedEngine } from "./scripted-engine.ts";

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
