#!/usr/bin/env node
import { existsSync } from "node:fs";
import { dirname, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { Command, Option } from "commander";
import type { ProtocolDefinition } from "../schema/dsl.ts";
import { relay } from "../schema/relay/index.ts";
import type { Release } from "../schema/release.ts";
import { tokenspeed } from "../schema/tokenspeed/index.ts";
import { releases } from "../schema/tokenspeed/releases/index.ts";
import { describeDrift, findDrift, writeFiles } from "./drift.ts";
import { generate } from "./generate.ts";
import { needing } from "./peer.ts";

const self = fileURLToPath(import.meta.url);
const fromSources = self.endsWith(".ts");
const command = fromSources ? "npx tsx codegen/main.ts" : "npx enginewire-codegen";

interface SchemaOptions {
  readonly schema?: string;
}

interface OutputOptions extends SchemaOptions {
  readonly out: string;
  readonly wire?: string;
  readonly extension?: ".ts" | ".js";
}

interface SourceOptions {
  readonly also: readonly string[];
  readonly verbose?: true;
}

/** The folder of this package, from its sources as well as compiled. */
function packageRoot(): string {
  let folder = dirname(self);
  while (!existsSync(resolve(folder, "package.json"))) folder = dirname(folder);
  return folder;
}

// In this package generated code imports the runtime's sources, anywhere else the published runtime.
function settings({ out, wire, extension }: OutputOptions) {
  const own = resolve(out) === resolve(packageRoot(), "generated");
  return { wire: wire ?? (own ? "../../src/wire/index.ts" : "enginewire/wire"), extension: extension ?? (own ? ".ts" : ".js") };
}

/** The protocols to generate: that of a folder, or those of this package. */
async function protocolsOf(options: SchemaOptions): Promise<readonly ProtocolDefinition[]> {
  return options.schema === undefined ? [tokenspeed, relay] : [(await schemaOf(options)).protocol];
}

/** An engine's schema: that of a folder, or the one of this package. */
async function schemaOf({
  schema,
}: SchemaOptions): Promise<{ readonly protocol: ProtocolDefinition; readonly releases: readonly Release[] }> {
  if (schema === undefined) return { protocol: tokenspeed, releases };
  const { openSchema } = await needing("ts-morph", () => import("./sync/load-schema.ts"));
  return openSchema(resolve(schema));
}

async function runGenerate(options: OutputOptions): Promise<void> {
  const files = await generate(await protocolsOf(options), settings(options));
  const touched = await writeFiles(resolve(options.out), files);
  for (const file of touched) console.log(`${options.out}/${file}`);
  console.log(`${files.size} files, ${touched.length === 0 ? "none changed" : `${touched.length} changed`}`);
}

interface CheckOptions extends OutputOptions, SourceOptions {
  readonly against?: string;
  readonly from: string;
}

async function runCheck(options: CheckOptions): Promise<void> {
  const files = await generate(await protocolsOf(options), settings(options));
  const drift = await findDrift(resolve(options.out), files);
  if (drift.length > 0) {
    const flags = [
      ...(options.schema === undefined ? [] : [` --schema ${options.schema}`]),
      ...(options.out === "generated" ? [] : [` --out ${relative(process.cwd(), resolve(options.out))}`]),
    ].join("");
    console.error(`${describeDrift(drift)}\n\nGenerated code is not what the schema says; run: ${command} generate${flags}`);
    process.exitCode = 1;
    return;
  }
  console.log(`${files.size} files are as the schema says`);
  if (options.against !== undefined) await runDiff(options.from, options.against, options);
}

interface DiffOptions extends SchemaOptions, SourceOptions {
  readonly json?: true;
}

async function runDiff(before: string, after: string, { also, json, verbose, ...schema }: DiffOptions): Promise<void> {
  const { compareNamed } = await needing("@lezer/python", () => import("./sync/compare-named.ts"));
  const { difference, skipped } = await compareNamed(before, after, also, await schemaOf(schema));
  const { exitCodeOf, printDifference, printJson, printSkipped } = await import("./sync/print.ts");
  if (verbose === true && skipped.length > 0) console.error(printSkipped(skipped));
  console.log(json === true ? printJson(difference) : printDifference(difference, process.stdout.columns ?? 160));
  process.exitCode = exitCodeOf(difference);
}

interface SyncOptions extends OutputOptions, SourceOptions {
  readonly dryRun?: true;
}

async function runSync(path: string, options: SyncOptions): Promise<void> {
  if (options.schema === undefined && !fromSources) throw new Error("say which folder holds your schema, such as --schema engine-schema");
  await needing("@lezer/python", () => import("./sync/read-python.ts"));
  const { runSynchronization } = await needing("ts-morph", () => import("./sync/sync-folder.ts"));
  const folder = resolve(options.schema ?? resolve(packageRoot(), "schema/tokenspeed"));
  const inside = folder.startsWith(resolve(packageRoot(), "schema") + sep) && fromSources;
  const { complete, lines } = await runSynchronization(path, {
    also: options.also,
    folder,
    beside: inside ? [relay] : [],
    constructors: inside ? "../dsl.ts" : "enginewire/schema",
    out: resolve(options.out),
    emit: settings(options),
    dryRun: options.dryRun === true,
    verbose: options.verbose === true,
    width: process.stdout.columns ?? 160,
  });
  console.log(lines.join("\n"));
  if (!complete) process.exitCode = 1;
}

function schemaOption(): Option {
  return new Option("--schema <folder>", "folder of a schema of your own, whose index.ts exports its protocol");
}

function addOutputOptions(subcommand: Command): Command {
  return subcommand
    .option("--out <folder>", "folder of the generated code", "generated")
    .addOption(schemaOption())
    .option("--wire <specifier>", "where generated code imports its runtime from (default: enginewire/wire)")
    .option("--extension <extension>", "extension of sibling files in imports, .ts or .js", (value) => {
      if (value !== ".ts" && value !== ".js") throw new Error("--extension must be .ts or .js");
      return value;
    });
}

function addSourceOptions(subcommand: Command): Command {
  const collect = (file: string, files: string[]): string[] => [...files, file];
  return subcommand
    .addOption(
      new Option("--also <file>", "a further Python file, with types that the first one imports or messages of its own (may be repeated)")
        .argParser(collect)
        .default([], "none"),
    )
    .option("--verbose", "say what is skipped in a Python file, and why");
}

const program = new Command("enginewire-codegen").description(
  "Generates codecs, types and validators from the schema, and keeps the schema as the engine's Python source has it.",
);
addOutputOptions(program.command("generate").description("write the generated code")).action(runGenerate);
addSourceOptions(addOutputOptions(program.command("check").description("fail where the generated code is not what the schema says")))
  .option("--against <path>", "fail as well where this Python file of the engine has moved on")
  .option("--from <source>", "what it is compared with: `schema`, or a recorded release such as tokenspeed@0.1.1", "schema")
  .action(runCheck);
addSourceOptions(
  program
    .command("diff")
    .description("say what differs on the wire; exit code 0 for nothing, 1 for compatible changes, 2 for breaking ones")
    .argument("<before>", "a Python file, `schema`, or a recorded release such as tokenspeed@0.1.1")
    .argument("<after>", "the same"),
)
  .addOption(schemaOption())
  .option("--json", "print JSON")
  .action(runDiff);
addSourceOptions(
  addOutputOptions(
    program
      .command("sync")
      .description("make the schema say what the engine's Python file says, then generate")
      .argument("<path>", "the Python file, such as io_struct.py"),
  ),
)
  .option("--dry-run", "say what would be written, and write nothing")
  .action(runSync);

try {
  await program.parseAsync();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
