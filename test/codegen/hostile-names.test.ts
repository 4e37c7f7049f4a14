import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { decode as decodeMessagePack, encode as encodeMessagePack } from "@msgpack/msgpack";
import ts from "typescript";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Ext, float } from "../../src/wire/index.ts";
import { protocol, reserved, rude } from "./hostile-schema.ts";
import { emitFiles } from "./small-schema.ts";

const repository = join(import.meta.dirname, "../..");

type Code = { readonly [name: string]: (...args: unknown[]) => unknown };
let folder: string;
let encoders: Code;
let decoders: Code;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "enginewire-hostile-"));
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  await symlink(join(repository, "node_modules"), join(folder, "node_modules"));
  for (const [name, text] of emitFiles(protocol, join(repository, "src/wire/index.ts"))) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  encoders = (await import(/* @vite-ignore */ pathToFileURL(join(folder, "encoders.ts")).href)) as Code;
  decoders = (await import(/* @vite-ignore */ pathToFileURL(join(folder, "decoders.ts")).href)) as Code;
});

afterAll(() => rm(folder, { recursive: true }));

function encode(name: string, init: unknown): Uint8Array {
  return encoders[`encode${name}`]?.(init) as Uint8Array;
}

function decode(name: string, bytes: Uint8Array): unknown {
  return decoders[`decode${name}`]?.(bytes);
}

test("the generated code passes the strictest checks of the compiler", () => {
  const names = ["types.ts", "encoders.ts", "decoders.ts", "replies.ts", "operations.ts", "zod.ts"].map((name) => join(folder, name));
  const { config } = ts.readConfigFile(join(repository, "src/tsconfig.base.json"), ts.sys.readFile) as {
    config: { compilerOptions: object };
  };
  const { options } = ts.convertCompilerOptionsFromJson(
    { ...config.compilerOptions, lib: ["ES2023", "ESNext.Disposable", "WebWorker"], noEmit: true, composite: false, skipLibCheck: true },
    repository,
  );
  const { rootDir: _, declaration: __, declarationMap: ___, outDir: ____, ...rest } = options;
  const program = ts.createProgram(names, { ...rest, allowImportingTsExtensions: true, rewriteRelativeImportExtensions: false });
  const diagnostics = ts.getPreEmitDiagnostics(program).map(({ messageText, file, start }) => {
    const line = file === undefined || start === undefined ? "" : file.text.slice(start, start + 60);
    return `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, "\n")} (${line})`;
  });
  expect(diagnostics).toEqual([]);
});

test("reserved words as fields", () => {
  const all = Object.fromEntries(reserved.map((word) => [word, `the ${word}`]));
  const bytes = encode("ReservedWords", { ...all });
  expect(decodeMessagePack(bytes)).toEqual(["ReservedWords", ...reserved.map((word) => `the ${word}`)]);
  expect(decode("ReservedWords", bytes)).toEqual({ $tag: "ReservedWords", ...all });
  expect(decodeMessagePack(encode("ReservedWords", {}))).toEqual(["ReservedWords", ...reserved]);
});

test("names of every object's properties", () => {
  const init = { constructor_: "c", __proto: "p", text: "t", own: null };
  const bytes = encode("Prototype", init);
  expect(decode("Prototype", bytes)).toEqual(init);
  const wire = encodeMessagePack(
    new Map([
      ["constructor", "c"],
      ["__proto__", "p"],
      ["toString", "t"],
      ["hasOwnProperty", null],
    ]) as never,
  );
  expect(wire).toBeDefined();
  expect(Buffer.from(bytes).includes("__proto__")).toBe(true);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  // Required fields are not found on Object.prototype.
  expect(() => decode("Prototype", Uint8Array.of(0x80))).toThrow("missing_field: Prototype.constructor");
});

test("names that differ only in their spelling", () => {
  const init = { fooBar: "1", fooBar2: "2", fooBar3: "3" };
  const bytes = encode("Collisions", init);
  expect(decodeMessagePack(bytes)).toEqual({ foo_bar: "1", fooBar: "2", FooBar: "3" });
  expect(decode("Collisions", bytes)).toEqual(init);
});

test("structs without fields", () => {
  expect(encode("Empty", {})).toEqual(Uint8Array.of(0x80));
  expect(decode("Empty", Uint8Array.of(0x80))).toEqual({});
  expect(encode("EmptyArray", {})).toEqual(Uint8Array.of(0x90));
  expect(decode("EmptyArray", Uint8Array.of(0x91, 0xc0))).toEqual({});
  expect(decode("A", encode("A", {}))).toEqual({ $tag: "A" });
  expect(() => encode("Empty", { a: 1 })).toThrow("unknown_field: Empty.a");
});

test.each([["Wide", 300] as const, ["WideMap", 70] as const])("%s: %i fields", (name, count) => {
  const bytes = encode(name, { field7: -1 });
  const values = Array.from({ length: count }, (_, i) => (i === 7 ? -1 : i));
  const expected = Object.fromEntries(values.map((value, i) => [`field${i}`, value]));
  expect(decode(name, bytes)).toEqual(name === "Wide" ? { $tag: name, ...expected } : expected);
  const plainValue = decodeMessagePack(bytes);
  expect(Array.isArray(plainValue) ? plainValue.slice(1) : Object.values(plainValue as object)).toEqual(values);
});

test("a struct that contains itself, down to the limit of nesting", () => {
  const leaf = { value: 1, left: null, children: [], named: {} };
  const tree = { value: 3, left: { ...leaf, value: -5 }, children: [leaf, { ...leaf, children: [leaf] }], named: { x: leaf } };
  expect(decode("Tree", encode("Tree", tree))).toEqual(tree);
  expect(decode("Tree", encode("Tree", { value: 1 }))).toEqual(leaf);
  const cycle: { value: number; left?: unknown } = { value: 1 };
  cycle.left = cycle;
  expect(() => encode("Tree", cycle)).toThrow(/^nesting_too_deep: Tree(\.left){64}: expected at most 64 levels/);
  const deep = Buffer.concat([
    ...Array.from({ length: 100 }, () => [Buffer.from("82a576616c756501a46c656674", "hex")]).flat(),
    Buffer.from([0xc0]),
  ]);
  expect(() => decode("Tree", deep)).toThrow(/^nesting_too_deep: Tree(\.left){64}: expected at most 64 levels/);
});

test("names and documentation that could end a string or a comment", () => {
  const property = Object.keys(
    decode("Rude", encodeMessagePack({ [rude]: "1", "naïve-key.with space": "2", 日本: "3" })) as object,
  )[0] as string;
  const init = { [property]: "1", naïveKeyWithSpace: "2", 日本: "3" };
  const bytes = encode("Rude", init);
  expect(decodeMessagePack(bytes)).toEqual({ [rude]: "1", "naïve-key.with space": "2", 日本: "3" });
  expect(decode("Rude", bytes)).toEqual(init);
});

test("types whose functions would have one name", () => {
  const init = { a: "a b", b: "ab", c: [["x", 1], "y"], d: [["x"], 1, "y"] };
  expect(decode("Alike", encode("Alike", init))).toEqual(init);
});

test("a struct named like a function that another type needs", () => {
  const init = { a: { x: "y", z: null } };
  expect(decode("NullableStr", encode("NullableStr", init))).toEqual(init);
});

test("operations named like reserved words", async () => {
  const { operations } = (await import(/* @vite-ignore */ pathToFileURL(join(folder, "operations.ts")).href)) as {
    operations: { [name: string]: { doc: string } };
  };
  expect(Object.keys(operations)).toEqual(["default", "class", "delete"]);
  expect(operations.default?.doc).toBe(rude);
  expect(decoders.decodeAnything?.(encoders.encodeAnything?.({ $tag: "ClassRequest" }))).toEqual({ $tag: "ClassRequest" });
});

const everyValue = {
  a: true,
  b: -(2 ** 31),
  c: 65535,
  d: 2 ** 32 - 1,
  e: -(2 ** 53) + 1,
  f: 2n ** 64n - 1n,
  g: 1,
  h: "héllo",
  i: Uint8Array.of(1, 2),
  j: { x: [null, 1.5] },
  k: new Map<unknown, unknown>([[1, "one"]]),
  l: [1, null, 0.5],
  m: ["s", null, [true, false]],
  n: { big: [1n, 2n ** 63n] },
  o: 1,
  p: ["a", "b"],
  q: [
    [1, 2],
    [3, 4],
  ],
  r: { none: null, empty: {} },
  s: [[Uint8Array.of(9)], []],
  t: { low: -1, high: 300 },
  u: [3, 1, 3],
  v: [Uint8Array.of(7)],
  w: [null, [0.5, 1], []],
};

test("every type, nested", () => {
  expect(decode("EveryType", encode("EveryType", everyValue))).toEqual(everyValue);
});

// A wrong value for each field, with the place it is reported at.
test.each<readonly [path: string, wrong: object]>([
  ["a", { a: 1 }],
  ["b", { b: 2 ** 31 }],
  ["c", { c: -1 }],
  ["d", { d: 1.5 }],
  ["e", { e: "1" }],
  ["f", { f: -1n }],
  ["f", { f: 2n ** 64n }],
  ["g", { g: 1n }],
  ["h", { h: null }],
  ["i", { i: [1] }],
  ["j", { j: new Date() }],
  ["k", { k: [] }],
  ["l[1]", { l: [1, "x"] }],
  ["m", { m: ["s", null] }],
  ["m[1]", { m: ["s", 1.5, []] }],
  ["m[2][0]", { m: ["s", null, [1]] }],
  ["n.big[1]", { n: { big: [1n, -1n] } }],
  ["o", { o: "y" }],
  ["p", { p: 1 }],
  ["q[1]", { q: [[1, 2], [3]] }],
  ["r.x.y", { r: { x: { y: 1 } } }],
  ["s[1][0]", { s: [[], ["x"]] }],
  ['t["a b"]', { t: { "a b": 2 } }],
  ["u[1]", { u: [1, 2 ** 31] }],
  ["v[0]", { v: [1] }],
  ["w[1][2]", { w: [null, [1, 2, "3"]] }],
])("a wrong value at %s", (path, wrong) => {
  expect(() => encode("EveryType", { ...everyValue, ...wrong })).toThrow(expect.objectContaining({ path: `EveryType.${path}` }));
});

test("values that are no structs", () => {
  const values: readonly (readonly [name: string, value: unknown, wrong: unknown, path: string])[] = [
    ["StrListList", [["a"], [], ["b", "c"]], [["a"], ["b", 1]], "[1][1]"],
    ["Maybe", null, 1, ""],
    ["Maybe", { a: 1 }, { a: "1" }, ".a"],
    ["Trees", [{ value: 1, left: null, children: [], named: {} }], [{ value: null }], "[0].value"],
  ];
  for (const [name, value, wrong, path] of values) {
    const bytes = encode(name, value);
    expect(decode(name, bytes)).toEqual(value);
    const refused = expect.objectContaining({ path: `${name}${path}` });
    expect(() => encode(name, wrong)).toThrow(refused);
    expect(() => decode(name, encodeMessagePack(wrong))).toThrow(refused);
    expect(() => decode(name, Buffer.concat([bytes, bytes]))).toThrow("malformed");
  }
});

test("tensors wherever they stand are frames in the order of the message", () => {
  const tensor = (length: number) => ({ dtype: "uint8", shape: [length], data: Uint8Array.from({ length }, (_, i) => i) });
  const inner = { first: "", second: "", a: tensor(300), b: [], c: {}, d: [tensor(2), 1], e: null };
  const value = {
    first: "x",
    second: "",
    a: tensor(256),
    b: [tensor(257), null, tensor(3)],
    c: { x: tensor(258), y: tensor(1) },
    d: [tensor(259), 7],
    e: inner,
  };
  const frames = encode("Holder", { held: [value, inner] }) as unknown as Uint8Array[];
  expect(frames.slice(1).map(({ length }) => length)).toEqual([256, 257, 258, 259, 300, 300]);
  expect(decode("Holder", frames as never)).toEqual({ held: [value, inner] });
  const wrong = { ...value, b: [null, { ...tensor(300), shape: [-1] }] };
  expect(() => encode("Holder", { held: [inner, wrong] })).toThrow(expect.objectContaining({ path: "Holder.held[1].b[1].shape[0]" }));
  expect(() => decode("Holder", frames.slice(0, 3) as never)).toThrow(expect.objectContaining({ path: "Holder.held[0].c.x.data" }));
});

test("the end of a block before each part of a tensor", () => {
  // a dtype that is not known has any number of bytes
  const small = { dtype: "x", shape: [], data: Uint8Array.of(1, 2, 3) };
  const large = { dtype: "a dtype", shape: [1, 200, 70_000, 2 ** 40], data: Uint8Array.from({ length: 256 }, (_, i) => i) };
  const rest = { a: large, b: [large, null, small], c: { x: large }, d: [small, 1], e: null };
  for (let i = 0; i < 160; i++) {
    // as below: a block is as long as the largest message before, or twice what is needed when it is made, for `first`
    encode("Framed", { ...rest, first: "x".repeat(70_000), second: "" });
    const init = { ...rest, first: "x".repeat(150_000), second: "y".repeat(150_000 - i) };
    expect(decode("Framed", encode("Framed", init))).toEqual(init);
  }
});

test("the end of a block before each value", () => {
  const rest = {
    a: null,
    b: true,
    c: -300,
    d: 2 ** 40,
    e: 2n ** 63n,
    f: 5n,
    g: 0.5,
    h: 70_000,
    i: 300,
    j: 2 ** 31,
    k: "short é",
    l: Uint8Array.of(1, 2, 3),
    m: Array.from({ length: 12 }, () => -(2 ** 40)),
    n: [[], [2 ** 33]],
    o: ["x", "y", "y", "a longer text of a list", "another longer text"],
    p: { x: 1 },
    q: "a literal",
    r: [
      new Map([[1, 2.5]]),
      2n ** 60n,
      Uint8Array.of(4),
      -0,
      { y: null, gone: undefined },
      true,
      float(3),
      new Ext(5, Uint8Array.of(6, 7, 8)),
    ],
    t: {},
    u: {},
    v: ["id", "id"],
    w: Array.from({ length: 12 }, (_, i) => -(3 ** i)),
    x: [[0.5, -1], [], [1e300]],
    y: [[], [2 ** 30], [1, 2, 3]],
  };
  const expected = {
    ...rest,
    r: [new Map([[1, 2.5]]), 2n ** 60n, Uint8Array.of(4), -0, { y: null }, true, 3, new Ext(5, Uint8Array.of(6, 7, 8))],
    s: "a default",
    t: { $tag: "A" },
  };
  for (let i = 0; i < 600; i++) {
    // A block is as long as the largest message before, or twice what is needed when it is made, for `first`.
    encode("Edges", { ...rest, first: "x".repeat(70_000), second: "" });
    const init = { ...rest, first: "x".repeat(150_000), second: "y".repeat(150_000 - i) };
    expect(decode("Edges", encode("Edges", init))).toEqual({ ...expected, first: init.first, second: init.second });
  }
});

test("what a decoder expected is named by the type of the field", () => {
  const encoded = decodeMessagePack(encode("EveryType", everyValue), { useBigInt64: true }) as unknown[];
  const expected = ["bool", "int", "int", "int", "int", "int", "float", "str", "bin"];
  expected.forEach((type, i) => {
    const wrong = encodeMessagePack(encoded.with(i, []), { useBigInt64: true });
    expect(() => decode("EveryType", wrong)).toThrow(
      expect.objectContaining({ expected: type, found: "array", path: `EveryType.${"abcdefghi"[i]}` }),
    );
  });
});

test("defaults are the same bytes as their values written out, and decode to them", () => {
  const values = {
    a: 1,
    b: -0,
    c: 2n ** 64n - 1n,
    d: -9007199254740991,
    e: [["é😀", 2]],
    f: { "a b": 3, é: 0.5 },
    g: { nested: [1, null, true, "x".repeat(300)] },
    h: 70000,
    i: [0n, 256n],
  };
  expect(encode("Defaults", {})).toEqual(encode("Defaults", values));
  expect(decode("Defaults", Uint8Array.of(0x80))).toEqual(values);
  expect(Object.is((decode("Defaults", Uint8Array.of(0x80)) as { b: number }).b, -0)).toBe(true);
  // Each decoded struct has defaults of its own.
  const [one, other] = [0, 1].map(() => decode("Defaults", Uint8Array.of(0x80)) as { e: unknown[] });
  one?.e.push("mine");
  expect(other?.e).toHaveLength(1);
});
