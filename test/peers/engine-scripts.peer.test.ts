import { describe, expect, test } from "vitest";
import { comparableOf, leftOut, operationOf, play, played, ruleCounts } from "../contract/client-play.ts";
import { scripts } from "../contract/engine-scripts.ts";
import { realEngine, realGroup } from "./real-group.ts";

describe.skipIf(realEngine === undefined)("our client plays recorded scripts with the real engine", () => {
  test.each(played.map((script) => [script.name, script] as const))("%s", async (_, script) => {
    const { client } = await realGroup(script.ranks, script.flags);
    const [seen, expected] = comparableOf(await play(script, client), script);
    expect(seen).toEqual(expected);
  });

  test("every script is played or left out by a rule", () => {
    console.log(`real engine: ${played.length} of ${scripts.length} scripts played; left out: ${JSON.stringify(ruleCounts())}`);
    expect(ruleCounts()).toEqual(leftOut);
    const met = new Set(played.flatMap(({ steps }) => steps.flatMap((step) => ("send" in step ? [operationOf(step.send.op).name] : []))));
    expect(met.size).toBe(17);
  });
});
