#!/usr/bin/env node
import { existsSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { tokenspeed } from "../schema/tokenspeed/index.ts";
import { describeDrift, findDrift, writeFiles } from "./drift.ts";
import { generate } from "./generate.ts";

const protocols = [tokenspeed];
const self = fileURLToPath(import.meta.url);
const command = self.endsWith(".ts") ? "npx tsx codegen/main.ts" : "npx enginewire-codegen";

interface Options {
  readonly out: string;
  readonly wire?: string;
  readonly extension?: ".ts" | ".js";
}

/** The folder of this package, from its sources as well as compiled. */
function packageRoot(): string {
  let folder = dirname(self);
  while (!existsSync(resolve(folder, "package.json"))) folder = dirname(folder);
  return folder;
}

// In this package generated code imports the runtime's sources, anywhere else the published runtime.
function settings({ out, wire, extension }: Options) {
  const own = resolve(out) === resolve(packageRoot(), "generated");
  return { wire: wire ?? (own ? "../../src/wire/index.ts" : "enginewire/wire"), extension: extension ?? (own ? ".ts" : ".js") };
}

async function runGenerate(options: Options): Promise<void> {
  const files = await generate(protocols, settings(options));
  const touched = await writeFiles(resolve(options.out), files);
  for (const file of touched) console.log(`${options.out}/${file}`);
  console.log(`${files.size} files, ${touched.length === 0 ? "none changed" : `${touched.length} changed`}`);
}

async function runCheck(options: Options): Promise<void> {
  const files = await generate(protocols, settings(options));
  const drift = await findDrift(resolve(options.out), files);
  if (drift.length === 0) {
    console.log(`${files.size} files are as the schema says`);
    return;
  }
  const flags = options.out === "generated" ? "" : ` --out ${relative(process.cwd(), resolve(options.out))}`;
  console.error(`${describeDrift(drift)}\n\nGenerated code is not what the schema says; run: ${command} generate${flags}`);
  process.exitCode = 1;
}

function addOptions(subcommand: Command): Command {
  return subcommand
    .option("--out <folder>", "folder of the generated code", "generated")
    .option("--wire <specifier>", "where generated code imports its runtime from (default: enginewire/wire)")
    .option("--extension <extension>", "extension of sibling files in imports, .ts or .js", (value) => {
      if (value !== ".ts" && value !== ".js") throw new Error("--extension must be .ts or .js");
      return value;
    });
}

const program = new Command("enginewire-codegen").description("Generates codecs, types and validators from the schema.");
addOptions(program.command("generate").description("write the generated code")).action(runGenerate);
addOptions(program.command("check").description("fail where the generated code is not what the schema says")).action(runCheck);

try {
  await program.parseAsync();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
