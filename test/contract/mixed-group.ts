import { onTestFinished } from "vitest";
import { type Client, createClient } from "../../src/index.ts";
import { type BindOptions, bind } from "../../src/node/index.ts";
import { type SimulatedEngine, type SimulatedEngineOptions, startEngine } from "../../src/testing/index.ts";

/** A client with engines of different kinds, one index each; all is closed with the test. */
export async function connectMixed(
  kinds: readonly Omit<SimulatedEngineOptions, "handshake">[],
  bindOptions: Partial<BindOptions> = {},
): Promise<{ readonly client: Client; readonly engines: readonly SimulatedEngine[] }> {
  const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: kinds.length, lingerMs: 0, ...bindOptions });
  onTestFinished(() => listener.close());
  const starting = kinds.map((options, index) => startEngine({ handshake: listener.handshakeAddress, index, ...options }));
  onTestFinished(async () => {
    for (const engine of await Promise.allSettled(starting)) if (engine.status === "fulfilled") await engine.value.close();
  });
  const [connection, engines] = await Promise.all([listener.accept({ timeoutMs: 20_000 }), Promise.all(starting)]);
  return { client: createClient(connection), engines };
}
