#!/usr/bin/env node
import { Command } from "commander";
import { addDemoCommand } from "./demo.ts";
import { addEngineCommand } from "./engine.ts";

const program = new Command("enginewire")
  .description("Control LLM inference engines over their own wire.")
  .showHelpAfterError("(add --help for usage)");

addDemoCommand(program);
addEngineCommand(program);

await program.parseAsync();
