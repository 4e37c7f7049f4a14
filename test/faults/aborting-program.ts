// A program that leaves streams, closes and has nothing else to do: what it sent last must still arrive. argv: how many.
// It prints its handshake address and lives as long as its closed sockets deliver.
import { bind } from "../../src/node/index.ts";

const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: 1 });
process.stdout.write(`${listener.handshakeAddress}\n`);
const connection = await listener.accept({ timeoutMs: 20_000 });
const streams = Array.from({ length: Number(process.argv[2]) }, (_, index) =>
  connection.generate({ rid: `r${index}`, inputIds: [1], samplingParams: {} }),
);
for (const stream of streams) await stream.return();
await connection.close();
