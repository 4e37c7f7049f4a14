import { emit } from "../../codegen/emit/index.ts";
import { buildModel } from "../../codegen/model.ts";
import { checkProtocol } from "../../schema/check.ts";
import {
  type FieldDefinition,
  field,
  operation,
  type ProtocolDefinition,
  protocol,
  type StructDefinition,
  type StructOptions,
  struct,
} from "../../schema/dsl.ts";

/** A struct with documentation, of a map layout unless said otherwise. */
export function small(name: string, fields: readonly FieldDefinition[], options: Partial<StructOptions> = {}): StructDefinition {
  return struct(name, { doc: `A ${name}.`, layout: "map", fields, ...options });
}

/** A field with documentation. */
export function plain(name: string, type: FieldDefinition["type"], options: Partial<FieldDefinition> = {}): FieldDefinition {
  return field(name, type, { doc: `The ${name}.`, ...options });
}

/** An operation between two empty tagged structs. */
export function call(name: string, options: Partial<Parameters<typeof operation>[1]> = {}) {
  const tagged = { layout: "array", tagged: true } as const;
  return operation(name, {
    request: small(`${name[0]?.toUpperCase()}${name.slice(1)}Request`, [], tagged),
    reply: small(`${name[0]?.toUpperCase()}${name.slice(1)}Reply`, [], tagged),
    effect: "read",
    answers: "at once",
    timeoutMs: 1000,
    repeatable: true,
    since: "0.1.0",
    summary: `Do ${name}`,
    doc: `Does ${name}.`,
    ...options,
  });
}

/** A protocol of a few structs. */
export function protocolOf(structs: readonly StructDefinition[], rest: Partial<ProtocolDefinition> = {}): ProtocolDefinition {
  return protocol("tiny", { release: "0.1.0", doc: "A test.", structs, operations: [], unions: [], constants: [], ...rest });
}

/** The generated files of a protocol, importing the runtime's sources from a folder of the repository. */
export function emitFiles(definition: ProtocolDefinition, wire = "enginewire/wire"): Map<string, string> {
  return emit(buildModel(checkProtocol(definition)), { wire, extension: ".ts" });
}

/** One declaration of a file, from its documentation on to the end. */
export function declarationOf(text: string, name: string): string {
  const blocks = text.split(/\n(?=\/\*\*|export |function |const |import )/);
  const index = blocks.findIndex((block) => new RegExp(`^(export )?(interface|type|function|const) ${name}\\b`).test(block));
  const before = blocks[index - 1] ?? "";
  return `${before.startsWith("/**") && before.trimEnd().endsWith("*/") ? `${before}\n` : ""}${blocks[index] ?? ""}`.trimEnd();
}
