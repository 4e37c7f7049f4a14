import vm from "node:vm";
import { Decoder, Encoder, ExtData } from "@msgpack/msgpack";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeAny, EngineWireError, Ext, encodeAny, float } from "../../../src/wire/index.ts";

const independentEncoder = new Encoder({ useBigInt64: true });
const independentDecoder = new Decoder({ useBigInt64: true, rawStrings: false });

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text.replaceAll(" ", ""), "hex"));
}

function errorOf(run: () => unknown): EngineWireError {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(EngineWireError);
    return error as EngineWireError;
  }
  throw new Error("nothing was thrown");
}

/** Every kind of value that both libraries have: integers within the safe range, floats that are not integral, nested. */
const scalar = fc.oneof(
  fc.constantFrom(null, true, false),
  fc.maxSafeInteger(),
  fc.integer(),
  fc.double({ noDefaultInfinity: true, noNaN: true }).filter((value) => !Number.isInteger(value)),
  fc.string({ unit: "grapheme", maxLength: 80 }),
  fc.string({ unit: "binary-ascii", maxLength: 400 }),
  fc.uint8Array({ maxLength: 70 }),
);
const key = fc.string({ unit: "grapheme" }).filter((text) => text !== "__proto__" && !/^\d+$/.test(text));
const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 6 },
    scalar,
    fc.array(tie("value"), { maxLength: 20 }),
    fc.dictionary(key, tie("value"), { noNullPrototype: true }),
  ),
})).value;

describe("against an independent codec", () => {
  test("what we encode decodes there to the same value", () => {
    fc.assert(
      fc.property(value, (input) => {
        expect(new Decoder().decode(encodeAny(input))).toEqual(input);
      }),
      { numRuns: 500 },
    );
  });

  test("what it encodes decodes here to the same value, and encodes to the same bytes", () => {
    fc.assert(
      fc.property(value, (input) => {
        const bytes = new Encoder().encode(input);
        expect(decodeAny(bytes)).toEqual(input);
        expect(hex(encodeAny(decodeAny(bytes)))).toBe(hex(bytes));
      }),
      { numRuns: 500 },
    );
  });

  test("messages that outgrow their block, again and again, are the same bytes", () => {
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 8 }), fc.integer({ min: 1, max: 400 }), (inputs, times) => {
        const input = Array.from({ length: times }, (_, i) => ({ [`key ${i}`]: inputs[i % inputs.length], gone: undefined }));
        const expected = new Encoder({ ignoreUndefined: true }).encode(input);
        expect(Buffer.compare(encodeAny(input), expected)).toBe(0);
      }),
      { numRuns: 150 },
    );
  });

  test("integers of 64 bits, by value and not by width", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.bigInt(-(2n ** 63n), 2n ** 64n - 1n), fc.bigInt(-(2n ** 54n), 2n ** 54n), fc.bigInt(-300n, 300n)),
        (integer) => {
          const safe = Number.isSafeInteger(Number(integer));
          const bytes = encodeAny(integer);
          expect(decodeAny(bytes)).toBe(safe ? Number(integer) : integer);
          expect(BigInt(independentDecoder.decode(bytes) as bigint | number)).toBe(integer);
          // It writes bigints in 64 bits, whatever their size.
          expect(decodeAny(independentEncoder.encode(integer))).toBe(safe ? Number(integer) : integer);
        },
      ),
      { numRuns: 500 },
    );
  });

  test("extensions, byte by byte", () => {
    fc.assert(
      fc.property(fc.integer({ min: -128, max: 127 }), fc.uint8Array({ maxLength: 300 }), (type, data) => {
        const bytes = encodeAny(new Ext(type, data));
        // Type -1 is a timestamp there.
        fc.pre(type !== -1);
        expect(new Decoder().decode(bytes)).toEqual(new ExtData(type, data));
        expect(decodeAny(bytes)).toEqual(new Ext(type, data));
      }),
    );
  });

  test.each([0, 1, 15, 16, 17, 31, 32, 255, 256, 65535, 65536])("arrays, maps, text and bytes of %i", (length) => {
    const text = "x".repeat(length);
    const items = Array.from({ length }, (_, i) => i);
    const map = Object.fromEntries(items.map((i) => [`k${i}`, i]));
    for (const input of [text, `${text}é`, items, map, new Uint8Array(length), items.map((i) => `some longer text ${i}`)]) {
      const bytes = encodeAny(input);
      expect(Buffer.compare(bytes, new Encoder().encode(input))).toBe(0);
      expect(decodeAny(bytes)).toEqual(input);
    }
  });
});

describe("numbers", () => {
  test.each([
    [0, "00"],
    [127, "7f"],
    [128, "cc80"],
    [255, "ccff"],
    [256, "cd0100"],
    [65535, "cdffff"],
    [65536, "ce00010000"],
    [2 ** 32 - 1, "ceffffffff"],
    [2 ** 32, "cf0000000100000000"],
    [2 ** 53 - 1, "cf001fffffffffffff"],
    [-1, "ff"],
    [-32, "e0"],
    [-33, "d0df"],
    [-128, "d080"],
    [-129, "d1ff7f"],
    [-32768, "d18000"],
    [-32769, "d2ffff7fff"],
    [-(2 ** 31), "d280000000"],
    [-(2 ** 31) - 1, "d3ffffffff7fffffff"],
    [-(2 ** 53) + 1, "d3ffe0000000000001"],
    [1.5, "cb3ff8000000000000"],
    [-0, "cb8000000000000000"],
    [Number.NaN, "cb7ff8000000000000"],
    [Number.POSITIVE_INFINITY, "cb7ff0000000000000"],
    // Beyond the safe range only a float can have come out as a number; integers come out as bigints.
    [2 ** 53, "cb4340000000000000"],
    [2 ** 60, "cb43b0000000000000"],
    [1e300, "cb7e37e43c8800759c"],
  ])("%d", (number, bytes) => {
    expect(hex(encodeAny(number))).toBe(bytes);
    expect(decodeAny(fromHex(bytes))).toBe(number);
  });

  test.each([
    [2n ** 53n, "cf0020000000000000"],
    [2n ** 64n - 1n, "cfffffffffffffffff"],
    [-(2n ** 53n), "d3ffe0000000000000"],
    [-(2n ** 63n), "d38000000000000000"],
  ])("%d stays a bigint", (integer, bytes) => {
    expect(hex(encodeAny(integer))).toBe(bytes);
    expect(decodeAny(fromHex(bytes))).toBe(integer);
  });

  test("a small bigint is written like a number", () => {
    expect(hex(encodeAny([5n, -33n]))).toBe("9205d0df");
  });

  test("float() forces a float", () => {
    expect(hex(encodeAny([float(1), float(-0), float(2 ** 40)]))).toBe("93cb3ff0000000000000cb8000000000000000cb4270000000000000");
    expect(errorOf(() => encodeAny([float("1" as never)])).path).toBe("[0]");
  });

  test("integers in every width, and float32", () => {
    const bytes = "99 cc05 cd0005 ce00000005 cf0000000000000005 d005 d10005 d200000005 d30000000000000005 ca3fc00000";
    expect(decodeAny(fromHex(bytes))).toEqual([5, 5, 5, 5, 5, 5, 5, 5, 1.5]);
  });
});

describe("maps", () => {
  test.each<readonly [what: string, map: Map<unknown, unknown>]>([
    ["an integer", new Map([[1, "x"]])],
    [
      "text that JavaScript takes for an index",
      new Map([
        ["10", 1],
        ["9", 2],
        ["b", 3],
      ]),
    ],
    [
      "__proto__",
      new Map<unknown, unknown>([
        ["a", 1],
        ["__proto__", { polluted: true }],
      ]),
    ],
    [
      "nil, booleans, floats",
      new Map<unknown, unknown>([
        [null, 1],
        [true, 2],
        [1.5, 3],
      ]),
    ],
    ["a large integer", new Map([[2n ** 60n, 1]])],
    [
      "text and others",
      new Map<unknown, unknown>([
        ["a", 1],
        ["b", 2],
        [3, 3],
        ["c", 4],
      ]),
    ],
  ])("with %s as a key is a Map in its order", (_, map) => {
    const decoded = decodeAny(encodeAny(map));
    expect(decoded).toBeInstanceOf(Map);
    expect([...(decoded as Map<unknown, unknown>)]).toEqual([...map]);
  });

  test.each([
    ["0x1"],
    ["01"],
    ["4294967295"],
    ["-1"],
    ["1.5"],
    ["1e3"],
    [""],
    ["_proto__"],
    ["constructor"],
    ["toString"],
    ["hasOwnProperty"],
  ])("with the key %j is a plain object", (name) => {
    const decoded = decodeAny(
      encodeAny(
        new Map([
          ["z", 0],
          [name, 1],
        ]),
      ),
    );
    expect(Object.getPrototypeOf(decoded)).toBe(Object.prototype);
    expect(Object.entries(decoded as object)).toEqual([
      ["z", 0],
      [name, 1],
    ]);
  });

  test("no key reaches a prototype", () => {
    const decoded = decodeAny(fromHex("81 a9 5f5f70726f746f5f5f 81 a8 706f6c6c75746564 c3")) as Map<string, unknown>;
    expect([...decoded]).toEqual([["__proto__", { polluted: true }]]);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect(hex(encodeAny(decoded))).toBe("81a95f5f70726f746f5f5f81a8706f6c6c75746564c3");
    // JSON.parse makes such a property of an object's own.
    expect(hex(encodeAny(JSON.parse('{"__proto__":{"polluted":true}}')))).toBe("81a95f5f70726f746f5f5f81a8706f6c6c75746564c3");
  });

  test("of duplicate keys the last wins", () => {
    expect(decodeAny(fromHex("82 a161 01 a161 02"))).toEqual({ a: 2 });
  });

  test("a property that is undefined is absent; 16 of which one is are 15", () => {
    expect(hex(encodeAny({ a: undefined, b: 1, c: undefined }))).toBe("81a16201");
    const sixteen = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`k${i}`, i === 3 ? undefined : i]));
    expect(decodeAny(encodeAny(sixteen))).toEqual(JSON.parse(JSON.stringify(sixteen)));
  });

  test("a getter is read once", () => {
    let reads = 0;
    const input = {
      get a() {
        reads++;
        return reads;
      },
    };
    expect(decodeAny(encodeAny(input))).toEqual({ a: 1 });
  });
});

class Custom {
  readonly x = 1;
}

describe("what MessagePack has no counterpart for is refused, wherever it stands", () => {
  test.each<readonly [what: string, value: unknown]>([
    ["a function", () => 1],
    ["a class", Custom],
    ["a symbol", Symbol("x")],
    ["a Date", new Date(0)],
    ["a Set", new Set([1])],
    ["a WeakMap", new WeakMap()],
    ["a RegExp", /x/],
    ["an Error", new Error("x")],
    ["a Promise", Promise.resolve()],
    ["an instance of a class", new Custom()],
    ["an object with a prototype of its own", Object.create({ inherited: 1 })],
    ["an ArrayBuffer", new ArrayBuffer(2)],
    ["a Float32Array", new Float32Array(2)],
    ["a Uint16Array", new Uint16Array(2)],
    ["a Uint8ClampedArray", new Uint8ClampedArray(2)],
    ["a DataView", new DataView(new ArrayBuffer(2))],
    ["a boxed number", Object(1)],
    ["a boxed string", Object("x")],
    ["a bigint beyond 64 bits", 2n ** 64n],
    ["a bigint below 64 bits", -(2n ** 63n) - 1n],
    ["a bigint of a thousand digits", 10n ** 1000n],
    ["text with a lone surrogate", "a\ud800b"],
    ["long text with a lone surrogate", `${"x".repeat(100)}\udc00`],
    ["very long text with a lone surrogate", `${"x".repeat(100_000)}\ud800`],
    ["an extension type of 8 bits and more", new Ext(128, new Uint8Array())],
    ["an extension without bytes", new Ext(1, "x" as never)],
  ])("%s", (what, exotic) => {
    const nested: readonly (readonly [value: unknown, path: string])[] = [
      [exotic, ""],
      [{ a: { b: [1, exotic] } }, "a.b[1]"],
      [[new Map([["k", exotic]])], "[0].k"],
    ];
    for (const [input, path] of nested) {
      const error = errorOf(() => encodeAny(input));
      expect([error.code, error.path]).toEqual(["invalid_value", path]);
      // Short and free of what JSON cannot hold.
      expect(JSON.stringify(error).length + error.message.length, what).toBeLessThan(600);
    }
    expect(errorOf(() => encodeAny({ "odd key": exotic })).path).toBe('["odd key"]');
  });

  test.each<readonly [path: string, value: unknown]>([
    ["", undefined],
    ["[1]", [1, undefined]],
    ["k", new Map([["k", undefined]])],
  ])("undefined at %j", (path, input) => {
    expect(errorOf(() => encodeAny(input)).path).toBe(path);
  });

  test("holes of arrays", () => {
    // biome-ignore lint/suspicious/noSparseArray: the hole is what is tested
    expect(errorOf(() => encodeAny([1, , 3])).path).toBe("[1]");
  });

  test("a map with a key that has no counterpart", () => {
    expect(errorOf(() => encodeAny(new Map([[new Date(0), 1]]))).code).toBe("invalid_value");
  });
});

describe("values of another realm", () => {
  const realm = vm.createContext({ makeUint8Array: undefined });

  test.each<readonly [source: string, value: unknown]>([
    ["({ a: [1, { b: null }] })", { a: [1, { b: null }] }],
    ["new Uint8Array([1, 2, 3])", Uint8Array.of(1, 2, 3)],
    ["new Map([[1, 'x']])", new Map([[1, "x"]])],
    ["Object.assign(Object.create(null), { a: 1 })", { a: 1 }],
  ])("%s", (source, expected) => {
    expect(decodeAny(encodeAny(vm.runInContext(source, realm)))).toEqual(expected);
  });

  test.each(["new Date(0)", "new Set()", "new (class X {})()", "new Float32Array(1)"])("%s is refused", (source) => {
    expect(errorOf(() => encodeAny(vm.runInContext(source, realm))).code).toBe("invalid_value");
  });

  test("bytes to decode", () => {
    expect(decodeAny(vm.runInContext("new Uint8Array([0x93, 1, 2, 3])", realm) as Uint8Array)).toEqual([1, 2, 3]);
  });
});

describe("extensions stay as they are", () => {
  test.each([
    "d40107",
    "d50208 09",
    "c7000a",
    "d6ff00000001",
    "d7ff0000000000000001",
    "c70cff000000000000000000000001",
    `d803${"00".repeat(16)}`,
  ])("%s", (bytes) => {
    const decoded = decodeAny(fromHex(bytes)) as Ext;
    expect(decoded).toBeInstanceOf(Ext);
    expect(decoded.type).toBeGreaterThanOrEqual(-1);
  });

  test.each([-128, 127])("the type %i", (type) => {
    expect(decodeAny(encodeAny(new Ext(type, new Uint8Array(5))))).toEqual(new Ext(type, new Uint8Array(5)));
    expect(() => encodeAny(new Ext(type + Math.sign(type), new Uint8Array(5)))).toThrow("invalid_value: expected an extension type");
  });

  test("a timestamp keeps its bytes", () => {
    expect(decodeAny(fromHex("d6ff00000001"))).toEqual(new Ext(-1, Uint8Array.of(0, 0, 0, 1)));
  });
});
