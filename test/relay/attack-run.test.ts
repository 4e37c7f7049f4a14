// The attacks of `npm run attacks`, each for a moment: the relay survives them, and its memory. Latency is only measured there.
import { expect, it, onTestFinished } from "vitest";
import { attacks } from "../attacks/attacks.ts";
import { mostGrowth, Run } from "../attacks/run.ts";

it("a relay in a process of its own survives every attack, and another client is served rightly meanwhile", async () => {
  const run = new Run();
  onTestFinished(() => run.close());
  await run.start();
  for (const attack of attacks) {
    const { tried, mistakes, memory } = await run.attack({ ...attack, longer: 1 }, { windowMs: 150, rounds: 1 });
    expect({ attack: attack.name, mistakes }).toEqual({ attack: attack.name, mistakes: [] });
    expect(tried, attack.name).toBeGreaterThan(0);
    expect(memory.peak - memory.before, attack.name).toBeLessThan(mostGrowth);
  }
  expect(run.ended).toBeUndefined();
});
