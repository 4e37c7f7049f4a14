import type { SourceFile } from "ts-morph";
import { capitalize, toProperty } from "../../schema/derive.ts";
import { isReserved, quote } from "../names.ts";
import type { ContractStruct } from "./contract.ts";
import { baseOf } from "./edit-schema.ts";
import type { PythonContract } from "./read-python.ts";
import { addToList, writeIndex } from "./schema-index.ts";
import type { SchemaSource } from "./schema-source.ts";
import { fieldsText, fieldText, UnsayableError } from "./schema-text.ts";

/** What was added, and what could not be, with the reason. */
export interface Added {
  readonly structs: readonly string[];
  readonly operations: readonly string[];
  readonly leftOut: readonly { readonly name: string; readonly because: string }[];
}

/** Where new definitions go, and how they find the schema's constructors. */
export interface Target {
  readonly protocol: string;
  /** The module of the schema's constructors. */
  readonly constructors: string;
  /** A sentence on what is described. */
  readonly doc: string;
}

/**
 * Adds structs that are new to a schema. Those whose names pair up become an operation, which the schema's check refuses
 * until a person has decided what a source cannot say.
 */
export function addStructs(source: SchemaSource, python: PythonContract, fresh: readonly ContractStruct[], target: Target): Added {
  const { texts, leftOut } = textsOf(source, python, fresh);
  const added = fresh.filter(({ name }) => texts.has(name));
  const operations = pairsOf(added);
  if (added.length === 0 && leftOut.length === 0) return { structs: [], operations: [], leftOut };
  const fileName = source.project.getSourceFile(`${source.folder}/index.ts`) === undefined ? "messages.ts" : "added.ts";
  const path = `${source.folder}/${fileName}`;
  if (added.length > 0) {
    const file = source.project.getSourceFile(path) ?? source.project.createSourceFile(path, "");
    const bases = addBases(source, python, added, target);
    const place = new Map(added.map(({ name }, i) => [name, i]));
    const parts = added.flatMap((struct, i) => {
      // An operation comes behind both of its structs.
      const own = operations.filter(({ request, reply }) => Math.max(place.get(request) ?? 0, place.get(reply) ?? 0) === i);
      return [texts.get(struct.name) ?? "", ...own.map(operationText)];
    });
    file.addStatements(parts.map((text) => `\n${text}`).join("\n"));
    source.importConstructors(file, target.constructors);
    for (const [name, from] of bases) importName(file, from, name);
    file.replaceWithText(
      `${file
        .getFullText()
        .replaceAll(/\n{3,}/g, "\n\n")
        .trim()}\n`,
    );
  }
  const paired = new Set(operations.flatMap(({ request, reply }) => [request, reply]));
  const structs = added.map(({ name }) => name).filter((name) => !paired.has(name));
  const names = { operations: operations.map(({ variable }) => variable), structs, leavesOut: leftOut.map(({ name }) => name) };
  const index = source.project.getSourceFile(`${source.folder}/index.ts`);
  if (index === undefined) writeIndex(source, target, fileName, names);
  else addToList(source, index, fileName, names);
  return { structs: added.map(({ name }) => name), operations: operations.map(({ name }) => name), leftOut };
}

function textsOf(source: SchemaSource, python: PythonContract, fresh: readonly ContractStruct[]) {
  const texts = new Map<string, string>();
  const leftOut: { name: string; because: string }[] = [];
  const described = new Set([...source.written("struct").keys(), ...fresh.map(({ name }) => name)]);
  for (const struct of fresh) {
    try {
      texts.set(struct.name, structText(struct, python));
    } catch (error) {
      if (!(error instanceof UnsayableError)) throw error;
      leftOut.push({ name: struct.name, because: error.message });
      described.delete(struct.name);
    }
  }
  // What holds a struct that is left out cannot be described either.
  for (let changed = true; changed; ) {
    changed = false;
    for (const [name, text] of texts) {
      const missing = [...text.matchAll(/ref\("(\w+)"\)/g)].map(([, other = ""]) => other).find((other) => !described.has(other));
      if (missing === undefined) continue;
      texts.delete(name);
      described.delete(name);
      leftOut.push({ name, because: `it holds ${missing}, which is left out` });
      changed = true;
    }
  }
  return { texts, leftOut };
}

function structText(struct: ContractStruct, python: PythonContract): string {
  const { name, layout, tag, doc } = struct;
  if (tag !== undefined && tag !== name) throw new UnsayableError("its tag is not the class's name");
  if (tag !== undefined && layout === "map") throw new UnsayableError("it is a map with a tag");
  const base = baseOf(struct, python.bases);
  const mainFile = python.name.split(/[\\/]/).at(-1);
  const fields = struct.fields.slice(base?.fields.length ?? 0);
  const texts = fields.map((field) => fieldText(field, layout));
  const lines = [
    `doc: ${quote(doc ?? `\`${name}\` of the engine, which has no documentation there.`)}`,
    `layout: ${quote(layout)}`,
    ...(tag === undefined ? [] : ["tagged: true"]),
    ...(base === undefined ? [] : [`extends: ${base.name}`]),
    ...(struct.file === undefined || struct.file === mainFile ? [] : [`definedIn: ${quote(struct.file)}`]),
    `fields: ${fieldsText(texts)}`,
  ];
  return `export const ${name} = struct(${quote(name)}, {\n${lines.map((line) => `  ${line},\n`).join("")}});`;
}

/** Defines bases that a schema has not yet, and returns where each stands. */
function addBases(
  source: SchemaSource,
  python: PythonContract,
  added: readonly ContractStruct[],
  { constructors }: Target,
): Map<string, SourceFile> {
  const used = python.bases.filter((base) => added.some((struct) => baseOf(struct, python.bases) === base));
  const found = new Map<string, SourceFile>();
  for (const base of used) {
    const known = source.written("base").get(base.name);
    if (known !== undefined) {
      found.set(base.name, known.call.getSourceFile());
      continue;
    }
    const path = `${source.folder}/base.ts`;
    const file = source.project.getSourceFile(path) ?? source.project.createSourceFile(path, "");
    const fields = fieldsText(base.fields.map((field) => fieldText(field, base.layout)));
    const doc = quote(base.doc ?? "Fields that several structs begin with.");
    file.addStatements(`\nexport const ${base.name} = base(${quote(base.name)}, {\n  doc: ${doc},\n  fields: ${fields},\n});`);
    source.importConstructors(file, constructors);
    file.replaceWithText(
      `${file
        .getFullText()
        .replaceAll(/\n{3,}/g, "\n\n")
        .trim()}\n`,
    );
    found.set(base.name, file);
  }
  return found;
}

/** Imports a definition of the schema from the file that it stands in. */
export function importName(file: SourceFile, from: SourceFile, name: string): void {
  const specifier = `${file.getRelativePathAsModuleSpecifierTo(from).replace(/\.[jt]s$/, "")}.ts`;
  const declaration = file.getImportDeclaration((item) => item.getModuleSpecifierValue() === specifier);
  if (declaration === undefined) file.addImportDeclaration({ moduleSpecifier: specifier, namedImports: [name] });
  else if (!declaration.getNamedImports().some((item) => item.getName() === name)) {
    const before = declaration.getNamedImports().filter((item) => item.getName() < name).length;
    declaration.insertNamedImport(before, name);
  }
}

interface Pair {
  readonly name: string;
  /** The constant that holds it: a method may have a name that a constant must not have. */
  readonly variable: string;
  readonly request: string;
  readonly reply: string;
}

/** Structs whose names are those of a request and its reply. */
function pairsOf(structs: readonly ContractStruct[]): Pair[] {
  const tagged = new Set(structs.filter(({ tag }) => tag !== undefined).map(({ name }) => name));
  return [...tagged].flatMap((request) => {
    const stem = /^(.+?)(Req|ReqInput|Input|Request)$/.exec(request)?.[1];
    if (stem === undefined) return [];
    const reply = [`${stem}ReqOutput`, `${stem}Output`, `${stem}Response`, `${stem}Reply`].find((name) => tagged.has(name));
    const name = toProperty(stem);
    return reply === undefined ? [] : [{ name, variable: isReserved(name) ? `call${capitalize(name)}` : name, request, reply }];
  });
}

function operationText({ name, variable, request, reply }: Pair): string {
  const decisions = [
    ["effect", "what it acts on, and so who may call it: read, admission, memory, weights or profile"],
    ["answers", "when an engine answers: at once, drained or gated"],
    ["timeoutMs", "how long a call waits by default, in milliseconds"],
    ["repeatable", "whether sending it again after an unknown outcome does no harm: true or false"],
    ["since", "the first release that answers it, such as 0.1.0"],
    ["summary", "a few words for help texts"],
    ["doc", "sentences on its behaviour"],
  ] as const;
  const lines = [`request: ${request}`, `reply: ${reply}`, ...decisions.map(([key, question]) => `${key}: decide(${quote(question)})`)];
  return `export const ${variable} = operation(${quote(name)}, {\n${lines.map((line) => `  ${line},\n`).join("")}});`;
}
