import { capitalize } from "../../schema/derive.ts";
import type { WireType } from "../../schema/dsl.ts";
import { quote } from "../names.ts";

/** The TypeScript type a decoder returns for a wire type. */
export function decodedType(type: WireType): string {
  switch (type.kind) {
    case "list":
    case "set":
      return `${inBrackets(decodedType(type.item))}[]`;
    case "tuple":
      return `[${type.items.map(decodedType).join(", ")}]`;
    case "map":
      return `DynamicMap<string, ${decodedType(type.value)}>`;
    case "dict":
      return "DynamicMap<unknown, unknown>";
    case "nullable":
      return type.inner.kind === "any" ? "unknown" : `${decodedType(type.inner)} | null`;
    case "strOrList":
      return "string | string[]";
    case "struct":
      return type.name;
    case "u64":
      return "bigint";
    default:
      return plainType(type);
  }
}

/** The TypeScript type an encoder accepts for a wire type. */
export function initType(type: WireType): string {
  switch (type.kind) {
    case "list":
    case "set":
      return `readonly ${inBrackets(initType(type.item))}[]`;
    case "tuple":
      return `readonly [${type.items.map(initType).join(", ")}]`;
    case "map":
      return `DynamicMapInit<string, ${initType(type.value)}>`;
    case "dict":
      return "DynamicMapInit<unknown, unknown>";
    case "nullable":
      return type.inner.kind === "any" ? "unknown" : `${initType(type.inner)} | null`;
    case "strOrList":
      return "string | readonly string[]";
    case "struct":
      return `${type.name}Init`;
    case "i64":
    case "u64":
      return "number | bigint";
    default:
      return plainType(type);
  }
}

function plainType(type: WireType): string {
  switch (type.kind) {
    case "bool":
      return "boolean";
    case "str":
      return "string";
    case "bytes":
      return "Uint8Array";
    case "tensor":
      return "Tensor";
    case "any":
      return "unknown";
    case "literal":
      return type.values.map((value) => (typeof value === "string" ? quote(value) : String(value))).join(" | ");
    default:
      return "number";
  }
}

function inBrackets(type: string): string {
  return type.includes(" | ") || type.startsWith("readonly ") ? `(${type})` : type;
}

const scalarNames = {
  bool: "Bool",
  i32: "Int32",
  u16: "Uint16",
  u32: "Uint32",
  i64: "Int64",
  u64: "Uint64",
  f64: "Float64",
  str: "Str",
  bytes: "Bin",
  tensor: "Tensor",
  any: "Any",
  dict: "Dict",
  strOrList: "StrOrList",
} as const;

/** A wire type as a part of a function's name, as the runtime spells those it has functions for. */
export function typeName(type: WireType): string {
  switch (type.kind) {
    case "list":
    case "set":
      return `${typeName(type.item)}List`;
    case "tuple":
      return `TupleOf${type.items.map(typeName).join("")}`;
    case "map":
      return `${typeName(type.value)}Map`;
    case "nullable":
      return `Nullable${typeName(type.inner)}`;
    case "literal":
      return type.values
        .map((value) => capitalize(String(value).replaceAll(/[^A-Za-z0-9]/g, "")))
        .join("Or")
        .slice(0, 60);
    case "struct":
      return type.name;
    default:
      return scalarNames[type.kind];
  }
}

/** The values of a literal as an error names them. */
export function literalText(values: readonly (string | number)[]): string {
  return values.map((value) => (typeof value === "string" ? JSON.stringify(value) : String(value))).join(" or ");
}

/** Numbers that the runtime reads and writes whole lists of, and lists of lists. */
const bulkNumbers: ReadonlySet<WireType["kind"]> = new Set(["i32", "i64", "f64"]);

/** Wire types that the runtime has one reader and one writer for, called with the field's name. */
export function runtimeName(type: WireType): string | undefined {
  switch (type.kind) {
    case "list":
    case "set":
      if (type.kind === "list" && type.item.kind === "list" && bulkNumbers.has(type.item.item.kind)) return typeName(type);
      return type.item.kind === "str" || bulkNumbers.has(type.item.kind) ? typeName(type) : undefined;
    case "tuple":
    case "map":
    case "nullable":
    case "literal":
    case "struct":
      return undefined;
    default:
      return typeName(type);
  }
}

/**
 * Whether a value of the type can nest without an end given by the schema: only around such fields are levels counted.
 */
export function nests(type: WireType): boolean {
  switch (type.kind) {
    case "list":
    case "set":
      return nests(type.item);
    case "tuple":
      return type.items.some(nests);
    case "nullable":
      return nests(type.inner);
    default:
      return type.kind === "any" || type.kind === "dict" || type.kind === "map" || type.kind === "struct";
  }
}
