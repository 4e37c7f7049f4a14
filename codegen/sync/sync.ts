import { type Added, addStructs } from "./add-structs.ts";
import { compare, type Difference } from "./compare.ts";
import type { Contract } from "./contract.ts";
import { editStructs } from "./edit-schema.ts";
import { type LoadedSchema, loadSchema } from "./load-schema.ts";
import { type PythonFile, readPython, type Skipped } from "./read-python.ts";
import { readSchema } from "./read-schema.ts";
import { SchemaSource } from "./schema-source.ts";

/** What is to be synchronized. */
export interface SyncOptions {
  readonly main: PythonFile;
  readonly also: readonly PythonFile[];
  /** The schema's folder, absolute. */
  readonly folder: string;
  /** The protocol's name where the schema is new. */
  readonly protocol: string;
  /** The module that a new file of the schema has its constructors from. */
  readonly constructors: string;
}

/** What a synchronization would write. Nothing is written yet. */
export interface Synchronized {
  /** Files of the schema whose text changes, by their paths. */
  readonly files: ReadonlyMap<string, string>;
  /** From the schema as it was to the engine's source. */
  readonly difference: Difference;
  readonly added: Added;
  /** Structs that the engine's source has no longer: a person removes them, with what uses them. */
  readonly kept: readonly string[];
  readonly skipped: readonly Skipped[];
  readonly schema: LoadedSchema;
}

/** Makes a schema say what the engine's source says, in memory. */
export function synchronize({ main, also, folder, protocol, constructors }: SyncOptions): Synchronized {
  const python = readPython(main, also);
  const source = new SchemaSource(folder);
  const texts = new Map(source.project.getSourceFiles().map((file) => [file.getFilePath() as string, file.getFullText()]));
  const isNew = source.project.getSourceFile(`${folder}/index.ts`) === undefined;
  const before: Contract = isNew
    ? { name: "an empty schema", kind: "schema", structs: [], leftOut: [] }
    : readSchema(loadSchema(source).protocol);
  const difference = compare(before, python);
  const own = constructorsOf(source) ?? constructors;
  for (const file of editStructs(source, before, python)) source.importConstructors(file, own);
  const known = new Set(before.structs.map((struct) => struct.python ?? struct.name));
  const fresh = python.structs.filter(({ name }) => !known.has(name) && !before.leftOut.includes(name));
  if (isNew && fresh.length === 0) throw new Error(`${main.file} has no structs`);
  const file = main.file.split(/[\\/]/).at(-1) ?? main.file;
  const added = addStructs(source, python, fresh, { protocol, constructors: own, doc: `What \`${file}\` of the engine says on the wire.` });
  const schema = loadSchema(source);
  // What was edited is read again: a schema that would not say what the source says is never written.
  const rest = compare(readSchema(schema.protocol), python).changes;
  const open = rest.find(({ kind }) => kind !== "struct removed");
  if (open !== undefined) {
    throw new Error(
      `${open.struct}${open.field === undefined ? "" : `.${open.field}`}: ${open.kind}, which cannot be edited here; edit the schema by hand`,
    );
  }
  const files = new Map(
    source.project
      .getSourceFiles()
      .map((item) => [item.getFilePath() as string, item.getFullText()] as const)
      .filter(([path, text]) => texts.get(path) !== text),
  );
  return { files, difference, added, kept: rest.map(({ struct }) => struct), skipped: python.skipped, schema };
}

/** The module that a schema has its constructors from. */
function constructorsOf(source: SchemaSource): string | undefined {
  const [protocol] = source.written("protocol").values();
  const imports = protocol?.call.getSourceFile().getImportDeclarations() ?? [];
  return imports.find((item) => item.getNamedImports().some((name) => name.getName() === "protocol"))?.getModuleSpecifierValue();
}
