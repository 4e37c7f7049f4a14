import { toProperty } from "../../schema/derive.ts";
import type { DefaultValue } from "../../schema/dsl.ts";
import { propertyKey, quote } from "../names.ts";
import { type ContractDefault, type ContractField, type ContractType, membersOf, spellType } from "./contract.ts";

/** A type that a schema cannot say. */
export class UnsayableError extends Error {
  override readonly name = "UnsayableError";
}

/** A type as the schema's source says it. Integers of Python get the range of 64 bits. */
export function typeText(type: ContractType): string {
  switch (type.kind) {
    case "int":
      return type.range ?? "i64";
    case "float":
      return "f64";
    case "bool":
    case "str":
    case "bytes":
    case "tensor":
    case "any":
      return type.kind;
    case "list":
    case "set":
      return `${type.kind}(${typeText(type.item)})`;
    case "tuple":
      return `tuple(${type.items.map(typeText).join(", ")})`;
    case "literal":
      return `literal(${type.values.map((value) => (typeof value === "string" ? quote(value) : String(value))).join(", ")})`;
    case "struct":
      return `ref(${quote(type.name)})`;
    case "map":
      if (type.key.kind === "str") return `map(${typeText(type.value)})`;
      if (type.key.kind === "any" && type.value.kind === "any") return "dict";
      break;
    case "union":
      return unionText(type);
    case "imported":
      throw new UnsayableError(`the type ${type.name} is imported; give its file with --also`);
  }
  throw new UnsayableError(`the type ${spellType(type)} cannot be said in a schema`);
}

function unionText(type: ContractType): string {
  const members = membersOf(type).filter(({ kind }) => kind !== "none");
  const nullable = members.length < membersOf(type).length;
  const spelled = members.map((member) => spellType(member)).sort();
  const [only] = members;
  if (members.some(({ kind }) => kind === "any")) return "any";
  const inner = spelled.join() === "list[str],str" ? "strOrList" : members.length === 1 && only !== undefined ? typeText(only) : undefined;
  if (inner === undefined) throw new UnsayableError(`the type ${spellType(type)} cannot be said in a schema`);
  return nullable ? `nullable(${inner})` : inner;
}

/** A default as the schema's source says it. */
export function valueText(value: ContractDefault): string {
  if (value instanceof Uint8Array) throw new UnsayableError("a default of bytes cannot be said in a schema");
  return plainText(value);
}

function plainText(value: DefaultValue): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "bigint") return `${value}n`;
  if (Array.isArray(value)) return `[${value.map(plainText).join(", ")}]`;
  if (typeof value !== "object" || value === null) return String(value);
  const members = Object.entries(value).map(([key, item]) => `${propertyKey(key)}: ${plainText(item)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}

const lineWidth = 140;

/** A call such as `field(...)` on one line, or with its options on lines of their own where that is too long. */
export function callText(head: string, options: readonly (readonly [name: string, text: string])[], indentation: string): string {
  const members = options.map(([name, text]) => `${name}: ${text}`);
  const line = `${head}, { ${members.join(", ")} })`;
  if (indentation.length + line.length < lineWidth) return line;
  return `${head}, {\n${members.map((member) => `${indentation}  ${member},\n`).join("")}${indentation}})`;
}

/** A field that is new to the schema. */
export function fieldText({ name, python, type, default: value, doc }: ContractField, layout: "array" | "map"): string {
  const options: [string, string][] = [];
  if (value !== undefined) options.push(["default", valueText(value)]);
  if (python !== undefined && layout === "map") options.push(["python", quote(python)]);
  // What every object of JavaScript has cannot be a field's property.
  if (toProperty(name) in Object.prototype) options.push(["property", quote(`${toProperty(name)}Value`)]);
  options.push(["doc", quote(doc ?? `\`${name}\` of the engine, which has no documentation there.`)]);
  return callText(`field(${quote(name)}, ${typeText(type)}`, options, "    ");
}

/** A list of fields as a struct's `fields` has it, with the indentation of a struct that stands at the top of its file. */
export function fieldsText(fields: readonly string[]): string {
  return fields.length === 0 ? "[]" : `[\n${fields.map((text) => `    ${text},\n`).join("")}  ]`;
}
