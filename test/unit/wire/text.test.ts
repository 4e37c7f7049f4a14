import { describe, expect, test } from "vitest";
import { decodeAny, EngineWireError, encodeAny } from "../../../src/wire/index.ts";

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

describe("text", () => {
  test.each([
    ["a byte that begins nothing", "a1ff"],
    ["an overlong slash", "a2c0af"],
    ["a surrogate", "a3eda080"],
    ["a pair of surrogates", "a6eda080edb080"],
    ["beyond Unicode", "a4f4908080"],
    ["cut off", "a2e282"],
    ["a lone continuation", "a180"],
    ["in long text", `d940${"78".repeat(63)}ff`],
    ["in longer text", `d980${"78".repeat(127)}80`],
  ])("that is not UTF-8 is refused: %s", (_, bytes) => {
    const error = errorOf(() => decodeAny(fromHex(bytes)));
    expect([error.code, error.expected]).toEqual(["malformed", "valid UTF-8"]);
  });

  test.each([["\ufeffbom"], ["\ufffd replaced"], [`${"x".repeat(80)}\ufffd`], ["\0"], ["é".repeat(300)], ["\u{1f600}".repeat(5000)]])(
    "%j comes back as it is",
    (text) => {
      expect(decodeAny(encodeAny(text))).toBe(text);
    },
  );

  test("of every length up to 300, ASCII and not", () => {
    for (let length = 0; length <= 300; length++) {
      for (const text of ["x".repeat(length), `${"x".repeat(length)}é`, `é${"x".repeat(length)}`]) {
        const bytes = encodeAny(text);
        expect(Buffer.from(bytes.subarray(bytes.length - Buffer.byteLength(text))).toString()).toBe(text);
        expect(decodeAny(bytes)).toBe(text);
      }
    }
  });
});
