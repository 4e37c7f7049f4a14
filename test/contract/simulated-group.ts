import { onTestFinished } from "vitest";
import { type Client, type ClientOptions, createClient } from "../../src/index.ts";
import { bind } from "../../src/node/index.ts";
import { type SimulatedEngine, type SimulatedEngineOptions, startEngine } from "../../src/testing/index.ts";

/** A client with a group of simulated engines; all is closed with the test. */
export async function connectSimulated(
  options: Omit<SimulatedEngineOptions, "handshake"> = {},
  clientOptions: ClientOptions = {},
): Promise<{ client: Client; engine: SimulatedEngine }> {
  const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: options.ranks ?? 1, lingerMs: 0 });
  onTestFinished(() => listener.close());
  const [connection, engine] = await Promise.all([
    listener.accept({ timeoutMs: 20_000 }),
    startEngine({ handshake: listener.handshakeAddress, ...options }),
  ]);
  onTestFinished(() => engine.close());
  return { client: createClient(connection, clientOptions), engine };
}

/** What a trainer calls `initWeightsUpdateGroup` with. */
export const group = { masterAddress: "127.0.0.1", masterPort: 29_500, rankOffset: 1, worldSize: 3 };

/** One bucket of weights. */
export const bucket = { names: ["w"], dtypeNames: ["bfloat16"], shapes: [[4]], weightVersion: null };
