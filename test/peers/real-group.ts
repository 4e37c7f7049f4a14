import { onTestFinished } from "vitest";
import { type Client, type ClientOptions, createClient } from "../../src/index.ts";
import { bind } from "../../src/node/index.ts";
import type { ScriptFlags } from "../contract/engine-scripts.ts";
import { peerBinary } from "./binaries.ts";
import { commandLineOf, LineProcess } from "./sim-engine-process.ts";

/** The real engine's control plane, where it was built. */
export const realEngine = peerBinary("engine-peer");

/** Our client with a group of real engines in one process; all is closed and killed with the test. */
export async function realGroup(
  ranks: number,
  flags: ScriptFlags = {},
  options: ClientOptions = {},
): Promise<{ client: Client; engine: LineProcess }> {
  const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: ranks, lingerMs: 0 });
  onTestFinished(() => listener.close());
  const started = ["--handshake", listener.handshakeAddress, "--ranks", String(ranks), "--until-stdin-closes"];
  const engine = new LineProcess(realEngine ?? "", [...started, ...commandLineOf(flags)]);
  onTestFinished(() => engine.stop("SIGKILL"));
  const [connection] = await Promise.all([listener.accept({ timeoutMs: 60_000 }), engine.line(({ event }) => event === "all_ready")]);
  return { client: createClient(connection, options), engine };
}
