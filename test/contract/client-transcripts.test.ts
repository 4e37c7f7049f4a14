import { beforeAll, describe, expect, test } from "vitest";
import { createClient } from "../../src/index.ts";
import { bind } from "../../src/node/index.ts";
import { type SimulatedEngineOptions, startEngine } from "../../src/testing/index.ts";
import { comparableOf, leftOut, play, played, ruleCounts } from "./client-play.ts";
import type { Script } from "./engine-scripts.ts";

async function playSimulated(script: Script): Promise<readonly [seen: unknown, expected: unknown]> {
  const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: script.ranks, lingerMs: 0 });
  const options = { handshake: listener.handshakeAddress, ranks: script.ranks, weightsInTokens: false, ...script.flags };
  const starting = startEngine(options as SimulatedEngineOptions);
  try {
    return comparableOf(await play(script, createClient(await listener.accept({ timeoutMs: 20_000 }))), script);
  } finally {
    await listener.close();
    await (await starting).close();
  }
}

/** Scripts mostly wait, so many run side by side. */
const atOnce = 8;

describe("our client plays recorded scripts with simulated engines", () => {
  const runs = new Map<string, ReturnType<typeof playSimulated>>();

  beforeAll(() => {
    const lanes: Promise<unknown>[] = Array.from({ length: atOnce }, () => Promise.resolve());
    for (const [position, script] of played.entries()) {
      const lane = position % atOnce;
      const run = (lanes[lane] ?? Promise.resolve()).then(() => playSimulated(script));
      runs.set(script.name, run);
      lanes[lane] = run.catch(() => {});
    }
  });

  test.each(played.map(({ name }) => name))("%s", { timeout: 120_000 }, async (name) => {
    const [seen, expected] = await (runs.get(name) ?? expect.unreachable());
    expect(seen).toEqual(expected);
  });
});

test("every script is played or left out by a rule", () => {
  expect(ruleCounts()).toEqual(leftOut);
  expect([played.length, played.filter(({ steps }) => steps.some((step) => "generate" in step)).length]).toEqual([62, 36]);
});
