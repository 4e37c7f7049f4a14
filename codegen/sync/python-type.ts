import { type ContractType, unionOf } from "./contract.ts";
import { readString } from "./python-string.ts";
import { allChildrenOf, childrenOf, parsePython, type SyntaxNode } from "./python-syntax.ts";
import { type Lookup, readValue } from "./python-value.ts";
import { Source } from "./source.ts";

/** What a file's names stand for. */
export interface Names {
  /** The type of a name, dots included; `undefined` where it is one of Python's own or of `typing`. */
  readonly typeOf: (name: string, node: SyntaxNode) => ContractType | undefined;
  /** The name that an imported one has in `typing` or `msgspec`, without the module: `t.Optional` is `Optional`. */
  readonly plainOf: (name: string) => string;
  readonly valueOf: Lookup;
}

const any: ContractType = { kind: "any" };
const scalars: { readonly [name: string]: ContractType } = {
  bool: { kind: "bool" },
  int: { kind: "int" },
  float: { kind: "float" },
  str: { kind: "str" },
  bytes: { kind: "bytes" },
  bytearray: { kind: "bytes" },
  memoryview: { kind: "bytes" },
  Any: any,
  None: { kind: "none" },
  NoneType: { kind: "none" },
  list: { kind: "list", item: any },
  List: { kind: "list", item: any },
  Sequence: { kind: "list", item: any },
  set: { kind: "set", item: any },
  Set: { kind: "set", item: any },
  frozenset: { kind: "set", item: any },
  FrozenSet: { kind: "set", item: any },
  tuple: { kind: "list", item: any },
  Tuple: { kind: "list", item: any },
  dict: { kind: "map", key: any, value: any },
  Dict: { kind: "map", key: any, value: any },
  Mapping: { kind: "map", key: any, value: any },
};

/** The type that an annotation stands for. */
export function readType(source: Source, node: SyntaxNode, names: Names): ContractType {
  const read = (child: SyntaxNode): ContractType => readType(source, child, names);
  switch (node.name) {
    case "None":
      return { kind: "none" };
    case "String":
      return readQuoted(source, node, names);
    case "ParenthesizedExpression":
      return read(childrenOf(node)[0] ?? node);
    case "BinaryExpression": {
      const [left, right] = childrenOf(node);
      if (left !== undefined && right !== undefined && source.text.slice(left.to, right.from).includes("|")) {
        return unionOf([read(left), read(right)]);
      }
      break;
    }
    case "VariableName":
      return readName(source, node, names);
    case "MemberExpression":
      return allChildrenOf(node).some(({ name }) => name === "[") ? readGeneric(source, node, names) : readName(source, node, names);
  }
  throw source.error(node, "a type of a form that is not known");
}

function readName(source: Source, node: SyntaxNode, names: Names): ContractType {
  const name = source.of(node).replaceAll(/\s/g, "");
  const found = names.typeOf(name, node) ?? scalars[names.plainOf(name)];
  if (found === undefined) throw source.error(node, "there is no such type in this file");
  return found;
}

function readGeneric(source: Source, node: SyntaxNode, names: Names): ContractType {
  const [head, ...parts] = childrenOf(node);
  if (head === undefined) throw source.error(node, "a type of a form that is not known");
  const generic = names.plainOf(source.of(head).replaceAll(/\s/g, ""));
  const types = (): ContractType[] => parts.map((part) => readType(source, part, names));
  const wanted = (count: number): ContractType[] => {
    if (parts.length !== count) throw source.error(node, `${generic} takes ${count === 1 ? "one type" : `${count} types`}`);
    return types();
  };
  switch (generic) {
    case "list":
    case "List":
    case "Sequence":
      return { kind: "list", item: wanted(1)[0] ?? any };
    case "set":
    case "Set":
    case "frozenset":
    case "FrozenSet":
      return { kind: "set", item: wanted(1)[0] ?? any };
    case "dict":
    case "Dict":
    case "Mapping": {
      const [key = any, value = any] = wanted(2);
      return { kind: "map", key, value };
    }
    case "tuple":
    case "Tuple":
      if (parts.length === 2 && parts[1]?.name === "Ellipsis") return { kind: "list", item: readType(source, parts[0] ?? node, names) };
      if (parts.length === 1 && source.of(parts[0] ?? node) === "()") return { kind: "tuple", items: [] };
      return { kind: "tuple", items: types() };
    case "Optional":
      return unionOf([...wanted(1), { kind: "none" }]);
    case "Union":
      return unionOf(types());
    case "Literal":
      return readLiteral(source, parts, names);
  }
  throw source.error(node, "a generic type that is not known");
}

/** The values of `Literal[...]`; None among them makes it nullable. */
function readLiteral(source: Source, parts: readonly SyntaxNode[], names: Names): ContractType {
  const values: (string | number)[] = [];
  let nullable = false;
  for (const part of parts) {
    const alias = part.name === "VariableName" ? names.typeOf(source.of(part), part) : undefined;
    if (alias?.kind === "literal") {
      values.push(...alias.values);
      continue;
    }
    const value = readValue(source, part, names.valueOf);
    if (value === null) nullable = true;
    else if (typeof value === "string") values.push(value);
    else if (typeof value === "bigint" && Number.isSafeInteger(Number(value))) values.push(Number(value));
    else throw source.error(part, "a literal must be a string or an integer");
  }
  const literal: ContractType = { kind: "literal", values: [...new Set(values)] };
  return nullable ? unionOf([literal, { kind: "none" }]) : literal;
}

/** A type in quotes, for a class that comes later. */
function readQuoted(source: Source, node: SyntaxNode, names: Names): ContractType {
  const text = readString(source, node);
  if (typeof text !== "string") throw source.error(node, "a type of a form that is not known");
  const inner = new Source(source.file, text.trim());
  try {
    const [statement, ...others] = childrenOf(parsePython(inner));
    const expression = statement?.name === "ExpressionStatement" ? childrenOf(statement)[0] : undefined;
    if (expression === undefined || others.length > 0) throw new Error("not a type");
    return readType(inner, expression, names);
  } catch {
    throw source.error(node, "a type in quotes that is not understood");
  }
}
