import type { DefaultValue } from "../../schema/dsl.ts";

/**
 * What one source says about the wire, as plain data: a Python file, the schema, or a recorded release. Types are
 * Python's, because that is what all three can say; an integer keeps the range that the schema gives it.
 */
export interface Contract {
  /** What a person calls the source, such as a path or `tokenspeed@0.1.1`. */
  readonly name: string;
  readonly kind: "python" | "schema" | "release";
  readonly structs: readonly ContractStruct[];
  /** Classes that the source leaves out on purpose. */
  readonly leftOut: readonly string[];
}

/** A struct with its fields in wire order, those of its bases included. */
export interface ContractStruct {
  readonly name: string;
  /** The class in the engine's source, where its name differs. */
  readonly python?: string;
  /** The file that defines it, without its folder; absent in the schema for the main one. */
  readonly file?: string;
  readonly layout: "array" | "map";
  /** The tag on the wire; absent where there is none. */
  readonly tag?: string;
  /** Who sends it, where that is known: a client a request, an engine a reply. */
  readonly direction?: "request" | "reply";
  /** The class it inherits from. */
  readonly base?: string;
  readonly fields: readonly ContractField[];
  readonly doc?: string;
  readonly place?: Place;
}

/** A field of a struct. */
export interface ContractField {
  readonly name: string;
  /** The name in the engine's source, where it differs. */
  readonly python?: string;
  readonly type: ContractType;
  /** Absent where the field is required. */
  readonly default?: ContractDefault;
  /** The class that declares it, where that is not the struct itself. */
  readonly from?: string;
  readonly doc?: string;
  readonly place?: Place;
}

/** A default: what the schema can hold, or bytes. */
export type ContractDefault = DefaultValue | Uint8Array;

/** Where in a file something stands, counted from 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** A type as Python would write it. */
export type ContractType =
  | { readonly kind: "bool" | "float" | "str" | "bytes" | "tensor" | "any" | "none" }
  | { readonly kind: "int"; readonly range?: IntegerRange }
  | { readonly kind: "list" | "set"; readonly item: ContractType }
  | { readonly kind: "tuple"; readonly items: readonly ContractType[] }
  | { readonly kind: "map"; readonly key: ContractType; readonly value: ContractType }
  | { readonly kind: "literal"; readonly values: readonly (string | number)[] }
  | { readonly kind: "union"; readonly members: readonly ContractType[] }
  | { readonly kind: "struct"; readonly name: string }
  | { readonly kind: "imported"; readonly name: string };

/** The ranges that the schema gives integers; Python's own has no name. */
export type IntegerRange = "i32" | "u16" | "u32" | "i64" | "u64";

/** Spells a type as Python does; integers with the schema's ranges, or all as `int`. */
export function spellType(type: ContractType, ranges = true): string {
  const spell = (inner: ContractType): string => spellType(inner, ranges);
  switch (type.kind) {
    case "any":
      return "Any";
    case "none":
      return "None";
    case "tensor":
      return "Tensor";
    case "int":
      return ranges ? (type.range ?? "int") : "int";
    case "list":
    case "set":
      return type.item.kind === "any" ? type.kind : `${type.kind}[${spell(type.item)}]`;
    case "tuple":
      return `tuple[${type.items.length === 0 ? "()" : type.items.map(spell).join(", ")}]`;
    case "map":
      return type.key.kind === "any" && type.value.kind === "any" ? "dict" : `dict[${spell(type.key)}, ${spell(type.value)}]`;
    case "literal":
      return `Literal[${type.values.map((value) => JSON.stringify(value)).join(", ")}]`;
    case "union":
      return type.members.map(spell).join(" | ");
    case "struct":
    case "imported":
      return type.name;
    default:
      return type.kind;
  }
}

/** Spells a default as Python does. */
export function spellValue(value: ContractDefault): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value !== "object") return String(value);
  if (value instanceof Uint8Array) return `bytes.fromhex("${Buffer.from(value).toString("hex")}")`;
  if (isList(value)) return `[${value.map(spellValue).join(", ")}]`;
  const entries = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${spellValue(item)}`);
  return `{${entries.join(", ")}}`;
}

/** A union of types, flat and each once; one type where they are all the same. */
export function unionOf(types: readonly ContractType[]): ContractType {
  const flat = types.flatMap((type) => (type.kind === "union" ? type.members : [type]));
  const members = [...new Map(flat.map((type) => [spellType(type), type])).values()];
  const [only] = members;
  return members.length === 1 && only !== undefined ? only : { kind: "union", members };
}

/** The members of a union, or the type itself. */
export function membersOf(type: ContractType): readonly ContractType[] {
  return type.kind === "union" ? type.members : [type];
}

/** A type with its structs under other names. */
export function renameStructs(type: ContractType, names: ReadonlyMap<string, string>): ContractType {
  const of = (inner: ContractType): ContractType => renameStructs(inner, names);
  switch (type.kind) {
    case "list":
    case "set":
      return { kind: type.kind, item: of(type.item) };
    case "map":
      return { kind: "map", key: of(type.key), value: of(type.value) };
    case "tuple":
      return { kind: "tuple", items: type.items.map(of) };
    case "union":
      return { kind: "union", members: type.members.map(of) };
    case "struct":
      return { kind: "struct", name: names.get(type.name) ?? type.name };
    default:
      return type;
  }
}

/** The structs that a type is made of. */
export function structsIn(type: ContractType): string[] {
  switch (type.kind) {
    case "list":
    case "set":
      return structsIn(type.item);
    case "map":
      return [...structsIn(type.key), ...structsIn(type.value)];
    case "tuple":
      return type.items.flatMap(structsIn);
    case "union":
      return type.members.flatMap(structsIn);
    default:
      return type.kind === "struct" ? [type.name] : [];
  }
}

function isList(value: object): value is readonly DefaultValue[] {
  return Array.isArray(value);
}
