import { describe, expect, test } from "vitest";
import type { SimulatedEngineOptions } from "../../src/testing/index.ts";
import { comparableOf, leftOutBecause, play } from "./client-play.ts";
import { scripts } from "./engine-scripts.ts";
import { connectSimulated } from "./simulated-group.ts";

const verdicts = scripts.map((script) => ({ script, because: leftOutBecause(script) }));
const played = verdicts.filter(({ because }) => because === undefined).map(({ script }) => script);

describe("our client plays recorded scripts with simulated engines", () => {
  test.concurrent.each(played.map((script) => [script.name, script] as const))("%s", { timeout: 120_000 }, async (_, script) => {
    const { client, engine } = await connectSimulated({ ranks: script.ranks, ...script.flags } as SimulatedEngineOptions);
    const [seen, expected] = comparableOf(await play(script, client), script);
    await client.close();
    await engine.close();
    expect(seen).toEqual(expected);
  });
});
