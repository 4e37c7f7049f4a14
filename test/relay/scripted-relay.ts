import { onTestFinished } from "vitest";
import { type Relay, type ServeOptions, serve } from "../../src/relay/index.ts";
import type { ScriptedEngine } from "../faults/scripted-engine.ts";
import { connectScripted } from "../faults/scripted-group.ts";

/** A relay in front of scripted engines, which say what a test tells them to; all is closed with the test. */
export async function serveScripted(
  count = 1,
  options: ServeOptions = {},
): Promise<{ readonly relay: Relay; readonly engines: readonly ScriptedEngine[]; readonly engine: ScriptedEngine }> {
  const { client, engines } = await connectScripted(count);
  const relay = await serve(client.connection, { port: 0, ...options });
  onTestFinished(() => relay.close("the test is over", { drainMs: 1 }));
  return { relay, engines, engine: engines[0] as ScriptedEngine };
}
