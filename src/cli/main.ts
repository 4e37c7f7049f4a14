#!/usr/bin/env node
import { createRequire } from "node:module";
import { Command } from "commander";
import { addDemoCommand } from "./demo.ts";
import { addEngineCommand } from "./engine.ts";
import { addServeCommand } from "./serve.ts";

const { version } = createRequire(import.meta.url)("enginewire/package.json") as { version: string };

const program = new Command("enginewire")
  .version(version)
  .description("Control LLM inference engines over their own wire.")
  .showHelpAfterError("(add --help for usage)");

addDemoCommand(program);
addEngineCommand(program);
addServeCommand(program);

await program.parseAsync();
