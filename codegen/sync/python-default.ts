import type { DefaultValue } from "../../schema/dsl.ts";
import { type ContractDefault, type ContractType, membersOf, spellType } from "./contract.ts";
import { childrenOf, type SyntaxNode } from "./python-syntax.ts";
import type { Names } from "./python-type.ts";
import { emptyOf, type PythonValue, readValue } from "./python-value.ts";
import type { Source } from "./source.ts";

/** What the right side of a field says: its default, and its key where it is renamed. */
export interface FieldValue {
  readonly default?: ContractDefault;
  readonly key?: string;
}

/** Reads what a field is set to: a constant, or `msgspec.field(...)`. */
export function readFieldValue(source: Source, node: SyntaxNode, type: ContractType, names: Names): FieldValue {
  const head = node.name === "CallExpression" ? childrenOf(node)[0] : undefined;
  if (head !== undefined && names.plainOf(source.of(head)) === "field") return readFieldCall(source, node, type, names);
  return { default: fitting(source, node, type, readValue(source, node, names.valueOf)) };
}

function readFieldCall(source: Source, node: SyntaxNode, type: ContractType, names: Names): FieldValue {
  const result: { default?: ContractDefault; key?: string } = {};
  for (const { keyword, value } of argumentsOf(source, node.getChild("ArgList") ?? node)) {
    if (keyword === "default") result.default = fitting(source, value, type, readValue(source, value, names.valueOf));
    else if (keyword === "default_factory") {
      const empty = emptyOf(source.of(value));
      if (empty === undefined) throw source.error(value, "a factory other than list, dict, set and the like cannot be worked out");
      result.default = fitting(source, value, type, empty);
    } else if (keyword === "name") {
      const key = readValue(source, value, names.valueOf);
      if (typeof key !== "string") throw source.error(value, "a field's name must be a string");
      result.key = key;
    } else throw source.error(value, `an argument of field() that is not known${keyword === undefined ? "" : `, ${keyword}`}`);
  }
  return result;
}

/** The arguments between brackets, with their keywords; unpacked ones are refused. */
export function argumentsOf(
  source: Source,
  list: SyntaxNode,
): { readonly keyword?: string; readonly value: SyntaxNode; readonly node: SyntaxNode }[] {
  const found: { keyword?: string; value: SyntaxNode; node: SyntaxNode }[] = [];
  let keyword: SyntaxNode | undefined;
  for (let child = list.firstChild; child !== null; child = child.nextSibling) {
    if (child.name === "*" || child.name === "**" || child.name === "ArithOp")
      throw source.error(list, "unpacked arguments cannot be worked out");
    if (child.name === "(" || child.name === ")" || child.name === "," || child.name === "Comment") continue;
    if (child.name === "AssignOp") keyword = found.pop()?.value;
    else {
      found.push(keyword === undefined ? { value: child, node: child } : { keyword: source.of(keyword), value: child, node: keyword });
      keyword = undefined;
    }
  }
  return found;
}

/** A value as plain data; an error where the type does not take it. */
function fitting(source: Source, node: SyntaxNode, type: ContractType, value: PythonValue): ContractDefault {
  if (!fits(type, value)) throw source.error(node, `this default does not fit the type ${spellType(type)}`);
  if (value instanceof Uint8Array) return value;
  return plain(source, node, value);
}

function plain(source: Source, node: SyntaxNode, value: PythonValue): DefaultValue {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (value instanceof Uint8Array) throw source.error(node, "bytes inside a default");
  if (Array.isArray(value)) return value.map((item: PythonValue) => plain(source, node, item));
  if (typeof value !== "object" || value === null) return value as DefaultValue;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(source, node, item)]));
}

/** Whether a type takes a value. */
function fits(type: ContractType, value: PythonValue): boolean {
  switch (type.kind) {
    case "any":
    case "imported":
      return true;
    case "none":
      return value === null;
    case "bool":
      return typeof value === "boolean";
    case "int":
      return typeof value === "bigint";
    case "float":
      return typeof value === "number" || typeof value === "bigint";
    case "str":
      return typeof value === "string";
    case "bytes":
      return value instanceof Uint8Array;
    case "list":
    case "set":
      return Array.isArray(value) && value.every((item) => fits(type.item, item));
    case "tuple":
      return Array.isArray(value) && value.length === type.items.length && type.items.every((item, i) => fits(item, value[i] ?? null));
    case "map":
      return isMap(value) && Object.entries(value).every(([key, item]) => fits(type.key, key) && fits(type.value, item));
    case "literal":
      return type.values.some((item) => item === (typeof value === "bigint" ? Number(value) : value));
    case "union":
      return membersOf(type).some((member) => fits(member, value));
    case "struct":
    case "tensor":
      return false;
  }
}

function isMap(value: PythonValue): value is { readonly [key: string]: PythonValue } {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}
