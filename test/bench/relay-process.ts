// A child process of the relay's benchmarks. Arguments: `relay` and a count: serves that many engines to anybody as fast as it
// can; `echo`: sends every WebSocket message back. Prints a line of JSON when it can be connected to.
import { WebSocketServer } from "ws";
import { bind } from "../../src/node/index.ts";
import { scopes, serve } from "../../src/relay/index.ts";

const [, , mode, count] = process.argv;
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

if (mode === "relay") {
  const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: Number(count), probeTimeoutMs: 20_000 });
  say({ handshake: listener.handshakeAddress });
  const connection = await listener.accept({ timeoutMs: 60_000 });
  const limits = { callsPerSecond: 10_000_000, callsInFlight: 4096, connectionsPerAddress: 4096 };
  const authenticate = () => ({ name: "bench", scopes });
  const relay = await serve(connection, { port: 0, limits, authenticate });
  say({ url: relay.url });
} else {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  server.on("connection", (socket) => socket.on("message", (data: Buffer) => socket.send(data)));
  server.on("listening", () => {
    const address = server.address();
    say({ url: `ws://127.0.0.1:${typeof address === "object" ? address?.port : ""}` });
  });
}
