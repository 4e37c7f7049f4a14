import { beforeAll, describe, expect, test } from "vitest";
import { type SimulatedEngineOptions, startEngine } from "../../src/testing/index.ts";
import { comparable, replay } from "./engine-replay.ts";
import { type EngineStarter, scripts } from "./engine-scripts.ts";

/** Abilities of the real engine that the simulated one lacks. Adding one here is a decision, not a way out. */
const unmetNeeds: readonly string[] = [];

const simulated: EngineStarter = (handshake, ranks, flags) => {
  const started = startEngine({ handshake, ranks, weightsInTokens: false, ...flags } as SimulatedEngineOptions);
  return {
    ready: started.then(() => {}),
    exited: started.then((engine) => engine.closed).then(() => {}),
    stop: () => started.then((engine) => engine.close()),
  };
};

/** Scripts mostly wait, so many run side by side. */
const atOnce = 8;
const met = scripts.filter(({ needs = [] }) => !needs.some((need) => unmetNeeds.includes(need)));

describe("scripts recorded from the real engine give the same replies", () => {
  const runs = new Map<string, Promise<Awaited<ReturnType<typeof replay>>>>();

  beforeAll(() => {
    const lanes = Array.from({ length: atOnce }, () => Promise.resolve());
    for (const [position, script] of met.entries()) {
      const lane = position % atOnce;
      const run = (lanes[lane] ?? Promise.resolve()).then(() => replay(script, simulated));
      runs.set(script.name, run);
      lanes[lane] = run.then(
        () => {},
        () => {},
      );
    }
  });

  test.each(met.map((script) => [script.name, script] as const))("%s", { timeout: 120_000 }, async (name, script) => {
    const { observed, surprises } = await (runs.get(name) ?? expect.unreachable());
    expect(comparable(observed, script.observed)).toEqual(comparable(script.observed, script.observed));
    expect(surprises).toEqual([]);
  });
});

test("no script is left out", () => {
  expect(unmetNeeds).toEqual([]);
  expect(scripts.length).toBeGreaterThanOrEqual(84);
});
