import fc from "fast-check";
import { Ext, float } from "../../src/wire/index.ts";
import { dataPlane, type StructDefinition, structs, type WireType } from "./schema-structs.ts";

/** A value as an encoder takes it, and as a decoder gives it back. */
export interface Sample<Value = unknown> {
  readonly give: Value;
  readonly see: Value;
}

type Samples = fc.Arbitrary<Sample>;

const same = (values: fc.Arbitrary<unknown>): Samples => values.map((value) => ({ give: value, see: value }));

const text = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: "binary", maxLength: 12 }) },
  { weight: 3, arbitrary: fc.string({ unit: "grapheme", maxLength: 20 }) },
  // around the lengths at which the header grows
  { weight: 1, arbitrary: fc.constantFrom(31, 32, 255, 256).chain((length) => fc.string({ minLength: length, maxLength: length + 1 })) },
);
const bytes = fc.oneof(
  { weight: 9, arbitrary: fc.uint8Array({ maxLength: 20 }) },
  { weight: 1, arbitrary: fc.uint8Array({ minLength: 255, maxLength: 257 }) },
);
/** Tensors that are inline and tensors that are frames, mostly near the length between the two. */
const tensor = fc
  .tuple(
    fc.constantFrom(["uint8", 1] as const, ["bfloat16", 2] as const, ["float32", 4] as const, ["int64", 8] as const),
    fc.constantFrom([], [0], [1], [2, 3], [31], [32], [16, 8], [1, 255], [16, 16], [257], [3, 5, 40]),
  )
  .chain(([[dtype, size], shape]) => {
    const length = shape.reduce((product: number, side) => product * side, size);
    return fc.uint8Array({ minLength: length, maxLength: length }).map((data) => ({ dtype, shape, data }));
  });
const edge = fc
  .tuple(fc.constantFrom(5, 7, 8, 15, 16, 31, 32, 52), fc.integer({ min: -1, max: 1 }), fc.constantFrom(1, -1))
  .map(([bits, off, sign]) => sign * (2 ** bits + off));
const safe = fc.oneof(edge, fc.maxSafeInteger(), fc.integer({ min: -200, max: 200 })).map((value) => value || 0);
const beyond = fc.oneof(fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n }), fc.bigInt({ min: -(2n ** 63n), max: -(2n ** 53n) }));
const double = fc.oneof(fc.double(), fc.constantFrom(0, -0, 1, 2 ** 53, 5e-324));

/** An integer field takes a number or a safe bigint, and gives a number. */
const integer: Samples = fc.oneof(
  { weight: 4, arbitrary: same(safe) },
  { weight: 1, arbitrary: safe.map((value) => ({ give: BigInt(value), see: value })) },
);

/** Inside `any`: an integral number is an integer there, so a float has to be asked for. */
const loose: Samples = fc.oneof(
  same(fc.constantFrom(null, true, false)),
  integer,
  same(beyond),
  same(fc.double().filter((value) => !Number.isInteger(value))),
  double.map((value) => ({ give: float(value), see: value })),
  same(text),
  same(bytes),
  // not type -1, which Python reads as a time
  fc
    .tuple(fc.constantFrom(0, 1, 3, 5, 72, 127, -2, -128), bytes)
    .map(([type, data]) => ({ give: new Ext(type, data), see: new Ext(type, data) })),
);

const textKey = same(fc.oneof(fc.constantFrom("__proto__", "constructor", "toString", "0", "12", "4294967295", "$int", ""), text));
const looseKey = fc.oneof(textKey, same(fc.constantFrom(null, true)), integer, same(beyond), same(fc.constantFrom(1.5, -0.25)));

const isIndex = (key: string) => /^(0|[1-9]\d*)$/.test(key) && Number(key) < 2 ** 32 - 1;

function seenMap(entries: readonly (readonly [unknown, unknown])[]): unknown {
  const plain = entries.every(([key]) => typeof key === "string" && key !== "__proto__" && !isIndex(key));
  return plain ? Object.fromEntries(entries as [string, unknown][]) : new Map(entries);
}

/** A map, given as a `Map` or, where its keys are strings, sometimes as a plain object. */
function maps(keys: Samples, values: Samples): Samples {
  // to Python `True` and 1 are one key
  const entries = fc.uniqueArray(fc.tuple(keys, values), { maxLength: 5, selector: ([key]) => (key.see === true ? 1 : key.see) });
  return fc.tuple(entries, fc.boolean()).map(([pairs, asObject]) => {
    if (asObject && pairs.every(([key]) => typeof key.give === "string")) {
      const give = Object.fromEntries(pairs.map(([key, value]) => [key.give as string, value.give]));
      const seen = new Map(pairs.map(([key, value]) => [key.see, value.see]));
      return { give, see: seenMap(Object.keys(give).map((key) => [key, seen.get(key)])) };
    }
    return {
      give: new Map(pairs.map(([key, value]) => [key.give, value.give])),
      see: seenMap(pairs.map(([key, value]) => [key.see, value.see])),
    };
  });
}

function lists(items: Samples, constraints: fc.ArrayConstraints = { maxLength: 4 }): Samples {
  return fc.array(items, constraints).map((list) => ({ give: list.map(({ give }) => give), see: list.map(({ see }) => see) }));
}

function anything(depth: number): Samples {
  if (depth === 0) return loose;
  const inner = anything(depth - 1);
  return fc.oneof({ weight: 4, arbitrary: loose }, { weight: 1, arbitrary: lists(inner) }, { weight: 2, arbitrary: maps(looseKey, inner) });
}

function valuesOf(type: WireType): Samples {
  switch (type.kind) {
    case "bool":
      return same(fc.boolean());
    case "i64":
      return integer;
    case "i32":
      return same(fc.oneof(fc.integer(), fc.integer({ min: -200, max: 200 }), fc.integer({ min: 65_530, max: 200_000 })));
    case "u64":
      return fc.oneof(
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((value) => ({ give: value, see: value })),
        fc.maxSafeNat().map((value) => ({ give: value, see: BigInt(value) })),
      );
    case "f64":
      return same(double);
    case "str":
      return same(text);
    case "bytes":
      return same(bytes);
    case "tensor":
      return same(tensor);
    case "any":
      return anything(2);
    case "dict":
      return maps(looseKey, anything(2));
    case "map":
      return maps(textKey, valuesOf(type.value));
    case "list":
      return fc.oneof(
        { weight: 9, arbitrary: lists(valuesOf(type.item)) },
        { weight: 1, arbitrary: lists(valuesOf(type.item), { minLength: 15, maxLength: 17 }) },
      );
    case "set":
      // Python puts more than one in an order of its own
      return lists(valuesOf(type.item), { maxLength: 1 });
    case "tuple":
      return fc
        .tuple(...type.items.map(valuesOf))
        .map((items) => ({ give: items.map(({ give }) => give), see: items.map(({ see }) => see) }));
    case "nullable":
      return fc.oneof(same(fc.constant(null)), valuesOf(type.inner));
    case "literal":
      return same(fc.constantFrom(...type.values));
    case "strOrList":
      return fc.oneof(same(text), same(fc.array(text, { maxLength: 4 })));
    case "struct":
      return structSamples(type.name);
    default:
      throw new Error(`no samples of ${type.kind}`);
  }
}

/** What a default is to a decoder. */
function seenDefault(value: unknown): unknown {
  return typeof value === "object" && value !== null ? structuredClone(value) : value;
}

/** Accepted inputs of a struct's encoder; fields with a default are left out now and then. */
export function structSamples(name: string): fc.Arbitrary<Sample<{ readonly [property: string]: unknown }>> {
  const { fields, tagged }: StructDefinition = structs.get(name) ?? dataPlane.get(name) ?? expectKnown(name);
  const parts = fields.map(({ property, type, ...field }) => {
    const given = valuesOf(type).map((sample) => ({ property, sample: sample as Sample | undefined }));
    if (!("default" in field)) return given;
    const left = fc.constant({ property, sample: undefined });
    return fc.oneof({ weight: 3, arbitrary: given }, { weight: 1, arbitrary: left });
  });
  const defaults = new Map(fields.map((field) => [field.property, field.default]));
  return fc.tuple(...parts).map((properties) => {
    const give: { [property: string]: unknown } = tagged ? { $tag: name } : {};
    const see: { [property: string]: unknown } = tagged ? { $tag: name } : {};
    for (const { property, sample } of properties) {
      if (sample !== undefined) give[property] = sample.give;
      see[property] = sample === undefined ? seenDefault(defaults.get(property)) : sample.see;
    }
    return { give, see };
  });
}

function expectKnown(name: string): never {
  throw new Error(`the schema has no struct ${name}`);
}
