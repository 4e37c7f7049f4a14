import { readFile } from "node:fs/promises";
import type { ProtocolDefinition } from "../../schema/dsl.ts";
import type { Release } from "../../schema/release.ts";
import type { Contract } from "./contract.ts";
import { type PythonFile, readPython, type Skipped } from "./read-python.ts";
import { readRelease } from "./read-release.ts";
import { readSchema } from "./read-schema.ts";

/** What can be compared besides Python files. */
export interface Known {
  readonly protocol: ProtocolDefinition;
  readonly releases: readonly Release[];
}

/** A source, and what of it is no message. */
export interface Loaded {
  readonly contract: Contract;
  readonly skipped: readonly Skipped[];
}

/** Loads what a person names: `schema`, a release such as `tokenspeed@0.1.1`, or a Python file. */
export async function loadContract(name: string, also: readonly string[], { protocol, releases }: Known): Promise<Loaded> {
  if (name === "schema") return { contract: readSchema(protocol), skipped: [] };
  if (/^[\w-]+@\d[\w.-]*$/.test(name)) {
    const found = releases.find((release) => `${release.protocol}@${release.release}` === name);
    const known = releases.map((release) => `${release.protocol}@${release.release}`).join(", ");
    if (found === undefined) throw new Error(`${name} is not recorded; there ${releases.length === 1 ? "is" : "are"} ${known || "none"}`);
    return { contract: readRelease(found), skipped: [] };
  }
  const [main, ...others] = await readFiles([name, ...also]);
  const contract = readPython(main as PythonFile, others);
  return { contract, skipped: contract.skipped };
}

/** Reads files, and says which one cannot be read. */
export function readFiles(paths: readonly string[]): Promise<PythonFile[]> {
  return Promise.all(paths.map(readBytes));
}

async function readBytes(file: string): Promise<PythonFile> {
  try {
    return { file, bytes: await readFile(file) };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    throw new Error(
      `${file} cannot be read${code === "ENOENT" ? ": there is no such file" : code === "EISDIR" ? ": it is a folder" : ""}`,
      { cause: error },
    );
  }
}
