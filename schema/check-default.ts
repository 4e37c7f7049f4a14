import type { DefaultValue, WireType } from "./dsl.ts";

const ranges = {
  i32: [-(2n ** 31n), 2n ** 31n - 1n],
  u16: [0n, 2n ** 16n - 1n],
  u32: [0n, 2n ** 32n - 1n],
  i64: [BigInt(Number.MIN_SAFE_INTEGER), BigInt(Number.MAX_SAFE_INTEGER)],
  u64: [0n, 2n ** 64n - 1n],
} as const;

/** What is wrong with a default of a type, if anything. */
export function checkDefault(type: WireType, value: DefaultValue): string | undefined {
  switch (type.kind) {
    case "any":
      return findBadKey(value);
    case "nullable":
      return value === null ? undefined : checkDefault(type.inner, value);
    case "bool":
      return expect(typeof value === "boolean", "true or false");
    case "f64":
      return expect(typeof value === "number", "a number");
    case "str":
      return expect(typeof value === "string", "a string");
    case "literal":
      return expect(type.values.includes(value as string | number), `one of ${type.values.map((item) => JSON.stringify(item)).join(", ")}`);
    case "strOrList":
      return expect(
        typeof value === "string" || (isList(value) && value.every((item) => typeof item === "string")),
        "a string or a list of strings",
      );
    case "list":
    case "set":
      return isList(value) ? firstOf(value.map((item) => checkDefault(type.item, item))) : "must be a list";
    case "tuple":
      if (!isList(value) || value.length !== type.items.length) return `must be a list of ${type.items.length}`;
      return firstOf(type.items.map((item, i) => checkDefault(item, value[i] as DefaultValue)));
    case "dict":
      return isObject(value) ? findBadKey(value) : "must be an object";
    case "map":
      if (!isObject(value)) return "must be an object";
      return findBadKey(value) ?? firstOf(Object.values(value).map((item) => checkDefault(type.value, item)));
    case "bytes":
      return "bytes cannot have a default here; make the field nullable";
    case "tensor":
      return "a tensor cannot have a default here; make the field nullable";
    case "struct":
      return "a struct cannot have a default here; make the field nullable";
    default:
      return checkInteger(value, ranges[type.kind]);
  }
}

function expect(fits: boolean, expected: string): string | undefined {
  return fits ? undefined : `must be ${expected}`;
}

function firstOf(texts: readonly (string | undefined)[]): string | undefined {
  return texts.find((text) => text !== undefined);
}

function checkInteger(value: DefaultValue, [low, high]: readonly [bigint, bigint]): string | undefined {
  const integer = typeof value === "bigint" || (typeof value === "number" && Number.isSafeInteger(value));
  return expect(integer && BigInt(value) >= low && BigInt(value) <= high, `an integer within ${low} .. ${high}`);
}

function isList(value: DefaultValue): value is readonly DefaultValue[] {
  return Array.isArray(value);
}

function isObject(value: DefaultValue): value is { readonly [key: string]: DefaultValue } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// JavaScript moves such keys to the front, or takes them for the prototype: the default would be another than written.
function findBadKey(value: DefaultValue): string | undefined {
  if (isList(value)) return firstOf(value.map(findBadKey));
  if (!isObject(value)) return undefined;
  const bad = Object.keys(value).find((key) => key === "__proto__" || /^\d+$/.test(key));
  return bad === undefined ? firstOf(Object.values(value).map(findBadKey)) : `must not have the key ${JSON.stringify(bad)}`;
}
