// A process of its own that registers as engine 0, prints a line for each request, and never answers.
import { ScriptedEngine } from "./scripted-engine.ts";

const engine = await new ScriptedEngine(process.argv[2] ?? "").register();
for (;;) process.stdout.write(`${(await engine.receive()).$tag}\n`);
