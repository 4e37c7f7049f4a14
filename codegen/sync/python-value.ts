import { readString } from "./python-string.ts";
import { childrenOf, type SyntaxNode } from "./python-syntax.ts";
import type { Source } from "./source.ts";

/** A value of Python. Integers are bigint here, so that `1` and `1.0` stay apart. */
export type PythonValue =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | readonly PythonValue[]
  | { readonly [key: string]: PythonValue };

/** Finds what a name, dots included, stands for; undefined where it stands for nothing known. */
export type Lookup = (name: string) => PythonValue | undefined;

/** The value of a constant expression. */
export function readValue(source: Source, node: SyntaxNode, lookup: Lookup): PythonValue {
  const value = (child: SyntaxNode): PythonValue => readValue(source, child, lookup);
  const text = source.of(node);
  switch (node.name) {
    case "None":
      return null;
    case "Boolean":
      return text === "True";
    case "Number":
      return readNumber(source, node);
    case "String":
    case "ContinuedString":
      return readString(source, node);
    case "ParenthesizedExpression":
      return value(childrenOf(node)[0] ?? node);
    case "ArrayExpression":
    case "TupleExpression":
      return childrenOf(node).map(value);
    case "DictionaryExpression":
      return readDictionary(source, node, value);
    case "UnaryExpression":
      return negate(source, node, value);
    case "BinaryExpression":
      return calculate(source, node, value);
    case "CallExpression": {
      const empty = /^(list|dict|tuple|set|frozenset|str|int|float|bool)\(\s*\)$/.exec(text)?.[1];
      if (empty !== undefined) return emptyValues[empty] as PythonValue;
      break;
    }
    case "VariableName":
    case "MemberExpression": {
      const found = /^[\w.]+$/.test(text) ? lookup(text) : undefined;
      if (found !== undefined) return found;
      throw source.error(node, "a default that is no constant of this file");
    }
  }
  throw source.error(node, "a default that cannot be worked out without running it");
}

const emptyValues: { readonly [name: string]: PythonValue } = {
  list: [],
  dict: {},
  tuple: [],
  set: [],
  frozenset: [],
  str: "",
  int: 0n,
  float: 0,
  bool: false,
};

/** The empty value that a factory such as `list` makes, if it is one of Python's own. */
export function emptyOf(factory: string): PythonValue | undefined {
  return emptyValues[factory];
}

function readNumber(source: Source, node: SyntaxNode): PythonValue {
  const text = source.of(node).replaceAll("_", "").toLowerCase();
  if (/^(0x[0-9a-f]+|0o[0-7]+|0b[01]+|0+|[1-9]\d*)$/.test(text)) return BigInt(text);
  if (/^(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(text) && /[.e]/.test(text)) return Number(text);
  throw source.error(node, "a number of a form that is not known");
}

function readDictionary(source: Source, node: SyntaxNode, value: (child: SyntaxNode) => PythonValue): PythonValue {
  const parts = childrenOf(node);
  if (parts.length % 2 === 1) throw source.error(node, "a dict with unpacked parts");
  const entries: [string, PythonValue][] = [];
  for (let i = 0; i < parts.length; i += 2) {
    const [key, item] = [parts[i], parts[i + 1]] as [SyntaxNode, SyntaxNode];
    const name = value(key);
    if (typeof name !== "string") throw source.error(key, "a dict whose key is no string");
    entries.push([name, value(item)]);
  }
  return Object.fromEntries(entries);
}

function negate(source: Source, node: SyntaxNode, value: (child: SyntaxNode) => PythonValue): PythonValue {
  const [operand] = childrenOf(node);
  const sign = source.text[node.from];
  const found = operand === undefined ? null : value(operand);
  if (typeof found !== "bigint" && typeof found !== "number") throw source.error(node, "an operation that is not on numbers");
  if (sign === "-") return -found;
  if (sign === "+") return found;
  throw source.error(node, "an operation that is not known here");
}

function calculate(source: Source, node: SyntaxNode, value: (child: SyntaxNode) => PythonValue): PythonValue {
  const [first, second] = childrenOf(node);
  if (first === undefined || second === undefined) throw source.error(node, "an operation that is not known here");
  const [left, right] = [value(first), value(second)];
  const operator = source.text.slice(first.to, second.from).replaceAll(/[()\s]|#.*/g, "");
  if (typeof left === "string" && typeof right === "string" && operator === "+") return left + right;
  const numbers = (typeof left === "bigint" || typeof left === "number") && (typeof right === "bigint" || typeof right === "number");
  if (!numbers) throw source.error(node, "an operation that is not on numbers");
  const result =
    typeof left === "bigint" && typeof right === "bigint" ? onIntegers(left, operator, right) : onFloats(left, operator, right);
  if (result === undefined) throw source.error(node, "an operation that is not known here");
  return result;
}

function onIntegers(left: bigint, operator: string, right: bigint): bigint | number | undefined {
  // Python rounds a quotient down, JavaScript towards zero.
  const down = (): bigint => left / right - (left % right !== 0n && left < 0n !== right < 0n ? 1n : 0n);
  if ((operator === "<<" || operator === "**") && (right < 0n || right > 1024n)) return undefined;
  if ((operator === "//" || operator === "%" || operator === "/") && right === 0n) return undefined;
  if (operator === "//") return down();
  if (operator === "%") return left - down() * right;
  if (operator === "**") return left ** right;
  if (operator === "<<") return left << right;
  if (operator === ">>") return left >> right;
  if (operator === "|") return left | right;
  if (operator === "&") return left & right;
  if (operator === "/") return Number(left) / Number(right);
  return withSigns(left, operator, right);
}

function withSigns(left: bigint, operator: string, right: bigint): bigint | undefined {
  if (operator === "+") return left + right;
  if (operator === "-") return left - right;
  return operator === "*" ? left * right : undefined;
}

function onFloats(one: bigint | number, operator: string, other: bigint | number): number | undefined {
  const [left, right] = [Number(one), Number(other)];
  if (operator === "+") return left + right;
  if (operator === "-") return left - right;
  if (operator === "*") return left * right;
  return operator === "/" && right !== 0 ? left / right : undefined;
}
