// Engines behind the relay, a process of their own. argv: the handshake address, then the groups, each as its first index and
// its ranks, such as 0+2.
import { startEngine } from "../../src/testing/index.ts";

const [, , handshake = "", ...groups] = process.argv;
process.on("disconnect", () => process.exit(0));
const options = { handshake, forwardMs: 5, maxBatch: 64, kvPages: 100_000, stopsWithFrontend: true };
const engines = await Promise.all(
  groups.map((group) => {
    const [index, ranks] = group.split("+").map(Number);
    return startEngine({ ...options, index: index as number, ranks: ranks as number });
  }),
);
await Promise.all(engines.map(({ closed }) => closed));
