import { type SourceFileStructure, StructureKind } from "ts-morph";
import { docText, quote } from "../names.ts";

/** What a user of the generator can choose. */
export interface EmitOptions {
  /** Where generated code finds its runtime. */
  readonly wire: string;
  /** Extension of sibling files in imports. */
  readonly extension: ".ts" | ".js";
}

/** A file's statements, besides the header. */
export type Statements = Extract<SourceFileStructure["statements"], readonly unknown[]>[number][];

/** Documentation of a declaration. */
export function docs(text: string): { readonly description: string }[] {
  return [{ description: docText(text) }];
}

/** Declares a function. */
export function declareFunction(options: {
  readonly name: string;
  readonly doc?: string;
  readonly exported?: boolean;
  readonly parameters: readonly (readonly [name: string, type: string])[];
  readonly returns: string;
  readonly body: readonly string[];
}): Statements[number] {
  const { name, doc, exported = false, parameters, returns, body } = options;
  return {
    kind: StructureKind.Function,
    name,
    isExported: exported,
    parameters: parameters.map(([parameter, type]) => {
      const optional = parameter.endsWith("?");
      return { name: optional ? parameter.slice(0, -1) : parameter, hasQuestionToken: optional, type };
    }),
    returnType: returns,
    statements: [body.join("\n")],
    ...(doc === undefined ? {} : { docs: docs(doc) }),
  };
}

/** Declares a constant. Written as text: ts-morph would indent the lines of an object once more. */
export function declareConstant(options: {
  readonly name: string;
  readonly doc?: string;
  readonly exported?: boolean;
  readonly type?: string;
  readonly value: string;
}): Statements[number] {
  const { name, doc, exported = false, type, value } = options;
  const comment = doc === undefined ? "" : `${blockComment(docText(doc))}\n`;
  return `${comment}${exported ? "export " : ""}const ${name}${type === undefined ? "" : `: ${type}`} = ${value};`;
}

function blockComment(text: string): string {
  return text.includes("\n")
    ? `/**\n${text
        .split("\n")
        .map((line) => ` * ${line}`.trimEnd())
        .join("\n")}\n */`
    : `/** ${text} */`;
}

const lineWidth = 140;

/** Imports names from a module; those that begin with `type ` are types. */
export function declareImport(from: string, names: Iterable<string>, typeOnly = false): Statements[number] {
  const plain = (name: string): string => name.replace("type ", "");
  const named = [...new Set(names)].sort((a, b) => (plain(a) < plain(b) ? -1 : 1));
  const keyword = typeOnly ? "import type" : "import";
  const line = `${keyword} { ${named.join(", ")} } from ${quote(from)};`;
  return line.length <= lineWidth ? line : `${keyword} {\n${named.map((name) => `  ${name},\n`).join("")}} from ${quote(from)};`;
}
