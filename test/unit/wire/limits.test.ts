import { describe, expect, test, vi } from "vitest";
import * as native from "../../../src/messages.ts";
import { decodeAny, defaultMaxDepth, EngineWireError, encodeAny, highestMaxDepth } from "../../../src/wire/index.ts";
import { fromHex } from "../../vectors/notation.ts";

function errorOf(run: () => unknown): EngineWireError {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(EngineWireError);
    return error as EngineWireError;
  }
  throw new Error("nothing was thrown");
}

function nested(levels: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = null;
  for (let i = 0; i < levels; i++) value = wrap(value);
  return value;
}

function bytesOf(levels: number, level: string): Uint8Array {
  return fromHex(`${level.repeat(levels)}c0`);
}

const levels: readonly (readonly [what: string, wrap: (inner: unknown) => unknown, hex: string])[] = [
  ["arrays", (inner) => [inner], "91"],
  ["objects", (inner) => ({ a: inner }), "81a161"],
  ["Maps", (inner) => new Map([[1, inner]]), "8101"],
];

describe.each(levels)("nesting of %s", (_, wrap, hex) => {
  test("64 levels are encoded and decoded", () => {
    const value = nested(defaultMaxDepth, wrap);
    expect(encodeAny(value)).toEqual(bytesOf(defaultMaxDepth, hex));
    expect(decodeAny(bytesOf(defaultMaxDepth, hex))).toEqual(value);
  });

  test("65 levels are refused, unless the limit is another", () => {
    expect(errorOf(() => encodeAny(nested(65, wrap))).code).toBe("nesting_too_deep");
    expect(errorOf(() => decodeAny(bytesOf(65, hex))).code).toBe("nesting_too_deep");
    expect(decodeAny(encodeAny(nested(65, wrap), 65), 65)).toEqual(nested(65, wrap));
    expect(errorOf(() => encodeAny(nested(3, wrap), 2)).code).toBe("nesting_too_deep");
    expect(errorOf(() => decodeAny(bytesOf(3, hex), 2)).code).toBe("nesting_too_deep");
  });

  test("the highest limit holds on the stack, and 100,000 levels do no harm", () => {
    expect(encodeAny(nested(highestMaxDepth, wrap), highestMaxDepth)).toEqual(bytesOf(highestMaxDepth, hex));
    decodeAny(bytesOf(highestMaxDepth, hex), highestMaxDepth);
    expect(errorOf(() => decodeAny(bytesOf(100_000, hex), highestMaxDepth)).code).toBe("nesting_too_deep");
  });

  test("values side by side are not nested", () => {
    const value = Array.from({ length: 200 }, () => nested(3, wrap));
    expect(decodeAny(encodeAny(value))).toEqual(value);
  });

  test("unknown elements and keys of any depth are skipped", () => {
    const skipped = Buffer.concat([fromHex("95b3466c75736843616368655265714f7574707574c0c0c3"), bytesOf(100_000, hex)]);
    expect(native.decodeFlushCacheReqOutput(skipped).success).toBe(true);
    const unknown = Buffer.concat([fromHex("82a16e"), bytesOf(100_000, hex), fromHex("a6737461747573a548454c4c4f")]);
    expect(native.decodeReadyMessage(unknown).status).toBe("HELLO");
  });
});

test("a value that contains itself is too deep", () => {
  const cycle: { self?: unknown } = {};
  cycle.self = [cycle];
  expect(errorOf(() => encodeAny(cycle)).code).toBe("nesting_too_deep");
  expect(errorOf(() => native.encodeSetInternalStateReq({ serverArgs: cycle })).path).toMatch(
    /^SetInternalStateReq\.server_args\.self\[0\]\.self/,
  );
});

test("the struct and its fields count as levels", () => {
  const state = (count: number) => ({ internalState: { a: nested(count, (inner) => [inner]) } });
  const deepest = native.encodeGetInternalStateReqOutput(state(defaultMaxDepth - 2));
  expect(native.decodeGetInternalStateReqOutput(deepest)).toMatchObject(state(defaultMaxDepth - 2));
  expect(errorOf(() => native.encodeGetInternalStateReqOutput(state(defaultMaxDepth - 1))).code).toBe("nesting_too_deep");
  const deeper = native.encodeGetInternalStateReqOutput(state(defaultMaxDepth - 1), 100);
  expect(errorOf(() => native.decodeGetInternalStateReqOutput(deeper)).code).toBe("nesting_too_deep");
  expect(native.decodeControlOutput(deeper, 100)).toMatchObject(state(defaultMaxDepth - 1));
});

test.each([0, -1, 1.5, 1001, Number.NaN, Number.POSITIVE_INFINITY, "64", null])("the limit %s is refused", (limit) => {
  expect(errorOf(() => encodeAny(null, limit as number)).code).toBe("invalid_argument");
  expect(errorOf(() => decodeAny(Uint8Array.of(0xc0), limit as number)).code).toBe("invalid_argument");
});

// Declared lengths are checked against the bytes that are there before anything is allocated for them.
test.each([
  ["array 32", "ddffffffff"],
  ["array 16", "dcffff"],
  ["map 32", "dfffffffff"],
  ["map 16", "deffffc0"],
  ["fixmap", "8fc0c0"],
  ["bin 32", "c6ffffffff"],
  ["bin 16", "c5ffff00"],
  ["bin 8", "c40500"],
  ["str 32", "dbffffffff"],
  ["str 16", "daffff61"],
  ["str 8", "d9ff61"],
  ["fixstr", "a361"],
  ["ext 32", "c9ffffffff01"],
  ["ext 16", "c8ffff01"],
  ["ext 8", "c7ff0100"],
  ["fixext 16", "d80100"],
  ["ext without a type", "c700"],
])("%s longer than the input, at the top, nested and skipped", (_, hex) => {
  const nestedTwice = `9192c0${hex}`;
  for (const input of [hex, nestedTwice]) expect(errorOf(() => decodeAny(fromHex(input))).code).toBe("malformed");
  expect(errorOf(() => native.decodeFlushCacheReqOutput(fromHex(`95b3466c75736843616368655265714f7574707574c0c0c3${hex}`))).code).toBe(
    "malformed",
  );
});

test("many lists that each claim all that is left allocate no more than the input", () => {
  // Each header is legal by itself; prepared for, 60 lists of a million elements each would take half a gigabyte.
  const input = Buffer.concat([Buffer.from("dd000f4240".repeat(60), "hex"), Buffer.alloc(1_000_100, 0xc0)]);
  const before = process.memoryUsage().heapUsed;
  expect(errorOf(() => decodeAny(input)).code).toBe("malformed");
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(200e6);
});

describe.each(["native", "portable"])("large text with %s string functions", (kind) => {
  async function load(): Promise<typeof native> {
    if (kind === "native") return native;
    vi.resetModules();
    vi.stubGlobal("process", { ...process, versions: {} });
    const portable = await import("../../../src/messages.ts");
    vi.unstubAllGlobals();
    return portable;
  }

  test("100 MB goes out and comes back, and errors do not repeat it", async () => {
    const { encodeFlushCacheReqInput, decodeFlushCacheReqInput, encodePauseSchedulerReqInput } = await load();
    const rid = "x".repeat(100_000_000);
    const bytes = encodeFlushCacheReqInput({ rid });
    expect(bytes.length).toBe(100_000_000 + 1 + 19 + 5 + 1);
    expect(decodeFlushCacheReqInput(bytes).rid === rid).toBe(true);
    let message = "";
    try {
      encodePauseSchedulerReqInput({ mode: rid as never });
    } catch (error) {
      message = `${(error as Error).message}${JSON.stringify(error)}`;
    }
    expect(message).toContain("a string of 100000000 characters");
    expect(message.length).toBeLessThan(500);
  });

  test("a list at the end of a block is as exact as elsewhere", async () => {
    const { encodeReleaseMemoryOccupationReqInput, decodeReleaseMemoryOccupationReqInput } = await load();
    const tags = Array.from({ length: 20 }, (_, i) => `a name of some length ${i}`);
    // The block is as long as twice what the first text needs; the second ends at every distance from its end.
    for (let i = 0; i < 3000; i += 7) {
      encodeReleaseMemoryOccupationReqInput({ rid: "x".repeat(70_000) });
      const init = { rid: "x".repeat(120_000), httpWorkerIpc: "y".repeat(120_000 - i), tags };
      expect(decodeReleaseMemoryOccupationReqInput(encodeReleaseMemoryOccupationReqInput(init))).toMatchObject(init);
    }
  });

  test("lists with one odd text are as exact as others", async () => {
    const { encodeReleaseMemoryOccupationReqInput, decodeReleaseMemoryOccupationReqInput } = await load();
    const plain = Array.from({ length: 40 }, (_, i) => `a name of some length ${i}`);
    for (const odd of [
      "",
      "é",
      "x".repeat(127),
      "x".repeat(128),
      "x".repeat(255),
      "x".repeat(256),
      "x".repeat(70_000),
      "\u{1f600}",
      "\u0080",
      "\0",
    ]) {
      for (const tags of [
        [...plain, odd, ...plain],
        [odd, ...plain],
        [...plain, odd],
        [odd, odd, odd, odd, odd, odd, odd, odd, odd],
        [odd],
        plain,
      ]) {
        const bytes = encodeReleaseMemoryOccupationReqInput({ tags });
        expect(Buffer.compare(bytes, Buffer.from(encodeAny(["ReleaseMemoryOccupationReqInput", null, null, tags])))).toBe(0);
        expect(decodeReleaseMemoryOccupationReqInput(bytes).tags).toEqual(tags);
      }
    }
  });
});
