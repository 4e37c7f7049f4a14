import { onTestFinished } from "vitest";
import { type Client, type ClientOptions, createClient } from "../../src/index.ts";
import { type BindOptions, bind, type Listener } from "../../src/node/index.ts";
import { ScriptedEngine } from "./scripted-engine.ts";

export { failureOf } from "../behaviours/outcomes.ts";

/** A listener on a free port that is closed with the test. */
export async function listen(options: Partial<BindOptions> = {}): Promise<Listener> {
  const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: 1, lingerMs: 0, ...options });
  onTestFinished(() => listener.close());
  return listener;
}

/** An engine that is closed with the test. */
export function scriptedEngine(listener: Listener, index = 0): ScriptedEngine {
  const engine = new ScriptedEngine(listener.handshakeAddress, index);
  onTestFinished(() => engine.close());
  return engine;
}

/** A client with this many scripted engines. It has no guard unless asked for: a scripted engine is in whatever state a test needs. */
export async function connectScripted(
  count: number,
  options: ClientOptions = { guard: false },
  bindOptions: Partial<BindOptions> = {},
): Promise<{ client: Client; engines: ScriptedEngine[] }> {
  const listener = await listen({ count, ...bindOptions });
  const engines = Array.from({ length: count }, (_, index) => scriptedEngine(listener, index));
  const [connection] = await Promise.all([listener.accept({ timeoutMs: 20_000 }), ...engines.map((engine) => engine.register())]);
  return { client: createClient(connection, options), engines };
}
