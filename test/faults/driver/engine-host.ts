// A process that holds obedient engines. Its driver orders them over IPC and may kill or stop the process at any moment.
import { ScriptedEngine } from "../scripted-engine.ts";
import { open, serve } from "./obedient-engine.ts";
import { type HostOrder, type HostReport, stopOrder } from "./orders.ts";

const engines = new Set<ScriptedEngine>();

function report(message: HostReport): void {
  // a driver that is gone needs no report
  if (process.connected) process.send?.(message);
}

async function start({ address, index, opening }: HostOrder): Promise<void> {
  const engine = new ScriptedEngine(address, index);
  engines.add(engine);
  try {
    await open(engine, opening);
    report({ up: index });
    await serve(engine, (id) => report({ received: id }));
  } catch (error) {
    if (engines.has(engine)) report({ failed: String(error) });
  }
}

function stop(): void {
  for (const engine of [...engines]) {
    engines.delete(engine);
    engine.close();
  }
}

process.on("message", (order: HostOrder | typeof stopOrder) => (order === stopOrder ? stop() : void start(order)));
// no engine outlives its driver, however that one ended
process.on("disconnect", () => process.exit());
