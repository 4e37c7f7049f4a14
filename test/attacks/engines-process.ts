// The engines behind the relay, a process of their own. argv: the handshake address.
import { startEngine } from "../../src/testing/index.ts";
import { clientsStream } from "./messages.ts";

const [, , handshake = ""] = process.argv;
process.on("disconnect", () => process.exit(0));
const options = { handshake, ranks: 2, forwardMs: 5, maxBatch: 64, kvPages: 100_000, stopsWithFrontend: true };
// those that are asked apart from those that generate: an engine answers between its steps, which would be measured
const groups = await Promise.all([0, clientsStream].map((index) => startEngine({ ...options, index })));
await Promise.all(groups.map(({ closed }) => closed));
