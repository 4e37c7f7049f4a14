import { expect } from "vitest";
import type { Client, GenerateOptions, GenerateRequest, OutputStream } from "../../src/index.ts";
import type { BindOptions } from "../../src/node/index.ts";
import type { ScriptedEngine } from "./scripted-engine.ts";
import { connectScripted } from "./scripted-group.ts";

/** What tests ask for unless they say otherwise. */
export const request: GenerateRequest = { inputIds: [1, 2, 3], samplingParams: { maxNewTokens: 8 } };

/** Scripted engines, and a short way to generate on them. */
export async function connect(count = 1, bindOptions: Partial<BindOptions> = {}) {
  const { client, engines } = await connectScripted(count, { guard: false }, bindOptions);
  return { client, engines, engine: engines[0] as ScriptedEngine, generate: generateOn(client) };
}

function generateOn({ connection }: Client) {
  return (fields: Partial<GenerateRequest> = {}, options: GenerateOptions = {}): OutputStream =>
    connection.generate({ ...request, ...fields }, options);
}

/** Fails where the engine is sent anything within a short time. */
export async function expectSilence(engine: ScriptedEngine): Promise<void> {
  expect(await engine.receivesWithin(50)).toBe(false);
}
