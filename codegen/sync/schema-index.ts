import type { SourceFile } from "ts-morph";
import { toProperty } from "../../schema/derive.ts";
import { quote } from "../names.ts";
import type { Target } from "./add-structs.ts";
import type { SchemaSource } from "./schema-source.ts";

/** Names for the lists of a protocol. */
export interface Listed {
  readonly operations: readonly string[];
  readonly structs: readonly string[];
  readonly leavesOut: readonly string[];
}

/** Writes the index of a schema that is new. */
export function writeIndex(source: SchemaSource, { protocol, constructors, doc }: Target, from: string, listed: Listed): void {
  const { operations, structs, leavesOut } = listed;
  const imported = [...operations, ...structs].sort((a, b) => (a < b ? -1 : 1));
  const list = (names: readonly string[]): string =>
    names.length === 0 ? "[]" : `[\n${names.map((name) => `    ${name},\n`).join("")}  ]`;
  const name = toProperty(protocol);
  const text = `import { decide, protocol, union } from ${quote(constructors)};
${imported.length === 0 ? "" : `import {\n${imported.map((item) => `  ${item},\n`).join("")}} from ${quote(`./${from}`)};\n`}
/** ${doc} */
export const ${name} = protocol(${quote(protocol)}, {
  release: decide("which release of the engine this is, such as 0.1.0"),
  doc: ${quote(doc)},
  structs: ${list(structs)},
  operations: ${list(operations)},
  unions: [
    union("ControlRequest", { doc: "Any control request.", members: "requests" }),
    union("ControlOutput", { doc: "Any control reply.", members: "replies" }),
  ],
  constants: [],
  leavesOut: ${list(leavesOut.map(quote))},
});
`;
  source.project.createSourceFile(`${source.folder}/index.ts`, text);
}

/** Adds names to the lists of a protocol that there is. */
export function addToList(source: SchemaSource, index: SourceFile, from: string, listed: Listed): void {
  const names = [...listed.operations, ...listed.structs];
  if (names.length > 0) {
    const specifier = `./${from}`;
    const declaration = index.getImportDeclaration((item) => item.getModuleSpecifierValue() === specifier);
    if (declaration === undefined) index.addImportDeclaration({ moduleSpecifier: specifier, namedImports: names });
    else declaration.addNamedImports(names);
  }
  for (const key of ["operations", "structs", "leavesOut"] as const) {
    const added = key === "leavesOut" ? listed.leavesOut.map(quote) : listed[key];
    if (added.length === 0) continue;
    const [protocol] = source.written("protocol").values();
    if (protocol === undefined) throw new Error(`${index.getFilePath()} has no protocol(...) that can be edited`);
    const list = source.list(protocol.options, key);
    if (list !== undefined) list.addElements([...added], { useNewLines: list.getText().includes("\n") });
    else if (protocol.options.getProperty(key) === undefined) {
      protocol.options.addPropertyAssignment({ name: key, initializer: `[${added.join(", ")}]` });
    } else throw new Error(`${key} of ${index.getFilePath()} is written in a way that cannot be edited; edit it by hand`);
  }
}
