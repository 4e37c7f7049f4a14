// Runs in Node beside the browser: simulated engines, and a relay that pages of the test server may use.
import type { TestProject } from "vitest/node";
import { bind } from "../../src/node/index.ts";
import { serve } from "../../src/relay/index.ts";
import { startEngine } from "../../src/testing/index.ts";
import type {} from "./provided.ts";

const token = "a token of the browser's tests, with = and /";
// the test server takes the first of these that is free
const origins = Array.from({ length: 32 }, (_, index) => `http://localhost:${63_315 + index}`);

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: 2, lingerMs: 0 });
  const [connection, engine] = await Promise.all([
    listener.accept({ timeoutMs: 20_000 }),
    startEngine({ handshake: listener.handshakeAddress, ranks: 2, memorySaver: true }),
  ]);
  const relay = await serve(connection, {
    port: 0,
    origins,
    authenticate: (credential) =>
      credential.token === token
        ? { name: `page at ${credential.origin}`, scopes: ["read", "admission", "memory", "weights", "profile"] }
        : undefined,
  });
  project.provide("relayUrl", relay.url);
  project.provide("relayToken", token);
  return async () => {
    await relay.close("the tests are over", { drainMs: 1 });
    await listener.close();
    await engine.close();
  };
}
