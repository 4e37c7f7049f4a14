import { mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import type { ProtocolDefinition } from "../../schema/dsl.ts";
import { findDrift, writeFiles } from "../drift.ts";
import type { EmitOptions } from "../emit/index.ts";
import { generate } from "../generate.ts";
import { readFiles } from "./load.ts";
import { printDifference, printSkipped } from "./print.ts";
import { type Synchronized, synchronize } from "./sync.ts";

/** Where a synchronization reads and writes. */
export interface Synchronization {
  readonly also: readonly string[];
  /** The schema's folder. */
  readonly folder: string;
  /** Protocols whose code stands in the same folder. */
  readonly beside: readonly ProtocolDefinition[];
  /** The module of the schema's constructors, for a schema that has none of its files yet. */
  readonly constructors: string;
  /** Folder of the generated code. */
  readonly out: string;
  readonly emit: EmitOptions;
  readonly dryRun: boolean;
  readonly verbose: boolean;
  /** Columns of the terminal. */
  readonly width: number;
}

/** What a synchronization has to say, and whether code could be generated. */
export interface Outcome {
  readonly complete: boolean;
  readonly lines: readonly string[];
}

/** Makes a folder's schema say what a Python file says, and generates from it. Nothing is written where either fails to be read. */
export async function runSynchronization(path: string, options: Synchronization): Promise<Outcome> {
  const { folder, out, emit, dryRun } = options;
  const [main, ...also] = await readFiles([path, ...options.also]);
  if (main === undefined) throw new Error("there is no file to read");
  const result = synchronize({ main, also, folder, protocol: protocolName(folder), constructors: options.constructors });
  const lines = [...(options.verbose && result.skipped.length > 0 ? [printSkipped(result.skipped)] : [])];
  lines.push(printDifference(result.difference, options.width), ...notesOf(result));
  const generated = await generate([result.schema.protocol, ...options.beside], emit).catch((error: unknown) => {
    if (error instanceof Error && error.name === "SchemaError") return error;
    throw error;
  });
  const written = [...result.files.keys()].map((file) => relative(process.cwd(), file));
  const drift = generated instanceof Error ? [] : await findDrift(out, generated);
  written.push(...drift.filter(({ kind }) => kind !== "extra").map(({ file }) => relative(process.cwd(), join(out, file))));
  if (!dryRun) {
    for (const [file, text] of result.files) {
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text);
    }
    if (!(generated instanceof Error)) await writeFiles(out, generated);
  }
  lines.push(
    ...(written.length === 0
      ? ["nothing to write"]
      : [dryRun ? "would write, and has not:" : "written:", ...written.map((file) => `  ${file}`)]),
  );
  if (generated instanceof Error) lines.push(`no code is generated before this is settled: ${generated.message}`);
  return { complete: !(generated instanceof Error), lines };
}

function notesOf({ added, kept }: Synchronized): string[] {
  return [
    ...(added.operations.length === 0 ? [] : [`new operations, for a person to decide about: ${added.operations.join(", ")}`]),
    ...added.leftOut.map(({ name, because }) => `left out: ${name}: ${because}`),
    ...kept.map((name) => `kept: ${name} is gone from the engine's source; remove it by hand, with what uses it`),
  ];
}

/** A folder's name as a protocol's. */
function protocolName(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, "-")
    .replaceAll(/^[^a-z]+|-+$/g, "");
  return name === "" ? "engine" : name;
}
