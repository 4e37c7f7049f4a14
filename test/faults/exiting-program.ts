// A program that uses the frontend, closes it, and has nothing else to do: it must exit by itself. argv: the scenario.
import { createClient } from "../../src/index.ts";
import { bind } from "../../src/node/index.ts";
import { ScriptedEngine } from "./scripted-engine.ts";

const scenario = process.argv[2];
const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: 1 });
if (scenario === "accept failed") {
  await listener.accept({ timeoutMs: 50 }).catch(() => {});
} else if (scenario === "listener only") {
  await listener.close();
} else {
  const engine = new ScriptedEngine(listener.handshakeAddress);
  const [connection] = await Promise.all([listener.accept({ timeoutMs: 20_000 }), engine.register()]);
  const client = createClient(connection);
  const call = client.isSleeping();
  call.catch(() => {});
  await engine.receive();
  if (scenario === "answered") {
    await engine.reply({ $tag: "IsSleepingReqOutput", isSleeping: false });
    await call;
  }
  engine.close();
  if (scenario === "engine gone") await call.catch(() => {});
  await client.close();
}
process.stdout.write("closed\n");
