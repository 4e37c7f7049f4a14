import { describe, expect, test, vi } from "vitest";
import {
  decodeUpdateWeightsFromTensorReqInput,
  encodeControlRequest,
  encodeIsSleepingReqInput,
  encodePauseSchedulerReqInput,
  encodeSetInternalStateReq,
  encodeUpdateWeightsFromDistributedReqInput,
  encodeUpdateWeightsFromTensorReqInput,
} from "../../../src/messages.ts";
import { decodeAny, Ext, encodeAny } from "../../../src/wire/index.ts";

function names(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `model.layers.${i}.self_attn.qkv_proj.weight`);
}

function update(count: number): Uint8Array {
  return encodeUpdateWeightsFromDistributedReqInput({
    names: names(count),
    dtypeNames: Array.from({ length: count }, () => "bfloat16"),
    shapes: Array.from({ length: count }, (_, i) => [i, 2048]),
    weightVersion: null,
  });
}

describe("encoded messages are the caller's", () => {
  test("later messages never change earlier ones, of any size", () => {
    const messages: { readonly bytes: Uint8Array; readonly copy: string }[] = [];
    const sizes = [1, 3000, 1, 1, 100, 1, 10_000, 1, 1, 999];
    for (let i = 0; i < 400; i++) {
      const bytes = update(sizes[i % sizes.length] as number);
      if (i % 10 === 0) messages.push({ bytes, copy: Buffer.from(bytes).toString("latin1") });
      for (let k = 0; k < 20; k++) encodePauseSchedulerReqInput({ mode: "wait" });
    }
    for (const { bytes, copy } of messages) expect(Buffer.from(bytes).toString("latin1") === copy).toBe(true);
  });

  test("overwriting one does not change another", () => {
    const one = encodeIsSleepingReqInput({});
    const other = encodeIsSleepingReqInput({});
    one.fill(0xff);
    expect(other).toEqual(encodeIsSleepingReqInput({}));
    expect(other).not.toEqual(one);
  });

  test("a transferred buffer does not break later encoders", () => {
    const first = encodePauseSchedulerReqInput({ mode: "keep" });
    const expected = Uint8Array.from(first);
    structuredClone(first, { transfer: [first.buffer as ArrayBuffer] });
    expect(first.length).toBe(0);
    expect(encodePauseSchedulerReqInput({ mode: "keep" })).toEqual(expected);
    expect(decodeAny(update(5000))).toHaveLength(9);
  });

  test("a buffer transferred away while it is written to is an error, not a broken message", () => {
    const earlier = encodeIsSleepingReqInput({});
    const input = {
      a: 1,
      get b() {
        structuredClone(earlier, { transfer: [earlier.buffer as ArrayBuffer] });
        return "x";
      },
    };
    expect(() => encodeAny(input)).toThrow("invalid_value: b: expected a buffer that stays in place");
    expect(decodeAny(encodeAny({ a: 1 }))).toEqual({ a: 1 });
  });

  test("a map that turns out shorter is exact in a block that moved meanwhile", () => {
    for (let i = 0; i < 50; i++) encodePauseSchedulerReqInput({ mode: "wait" });
    for (const size of [10, 100_000]) {
      const rest = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`key ${i}`, "x".repeat(size)]));
      const input = { first: undefined, ...rest, nested: { gone: undefined, big: names(2000), also: undefined }, last: undefined };
      expect(decodeAny(encodeAny(input))).toEqual({ ...rest, nested: { big: names(2000) } });
    }
  });

  test("their length is exact whatever block they are in", () => {
    for (const count of [1, 100, 1000, 10_000]) {
      const bytes = update(count);
      expect(decodeAny(Uint8Array.from(bytes))).toHaveLength(9);
    }
  });
});

describe("an input that runs code", () => {
  test("may encode other messages", () => {
    const inner: Uint8Array[] = [];
    const input = {
      get first() {
        inner.push(encodePauseSchedulerReqInput({ mode: "wait" }));
        return "one";
      },
      get second() {
        inner.push(update(2000));
        return "two";
      },
    };
    expect(decodeAny(encodeSetInternalStateReq({ serverArgs: input }))).toEqual([
      "SetInternalStateReq",
      null,
      null,
      { first: "one", second: "two" },
    ]);
    expect(inner[0]).toEqual(encodePauseSchedulerReqInput({ mode: "wait" }));
    expect(inner[1]).toEqual(update(2000));
  });

  test("may throw: its error comes through, and the next message is whole", () => {
    const thrown = new RangeError("mine");
    const input = {
      a: "x".repeat(10),
      get b() {
        throw thrown;
      },
    };
    expect(() => encodeSetInternalStateReq({ serverArgs: input })).toThrow(thrown);
    expect(() => encodeAny([names(5000), input])).toThrow(thrown);
    expect(decodeAny(encodePauseSchedulerReqInput({ mode: "keep" }))).toEqual(["PauseSchedulerReqInput", null, null, "keep"]);
  });

  test("an array that shrinks or changes between two looks is never a broken message", () => {
    const honest = names(20);
    for (const change of [
      (list: unknown[]) => list.splice(5),
      (list: unknown[]) => list.splice(5, 1, 7),
      (list: unknown[]) => list.splice(5, 1, "short"),
    ]) {
      const list: unknown[] = [...honest];
      let looks = 0;
      const proxy = new Proxy(list, {
        get(target, property, receiver) {
          looks++;
          if (looks === 30) change(target);
          return Reflect.get(target, property, receiver) as unknown;
        },
      });
      let bytes: Uint8Array | undefined;
      try {
        bytes = encodeControlRequest({ $tag: "ReleaseMemoryOccupationReqInput", tags: proxy as string[] });
      } catch (error) {
        expect(error).toMatchObject({ code: "invalid_value" });
      }
      if (bytes !== undefined) expect((decodeAny(bytes) as unknown[][])[3]?.every((item) => typeof item === "string")).toBe(true);
    }
  });

  test("a Map that changes while it is encoded is refused", () => {
    const map = new Map<string, unknown>();
    map.set("a", {
      get x() {
        map.set("later", 1);
        return 1;
      },
    });
    expect(() => encodeAny(map)).toThrow("invalid_value: expected a Map that stays as it is");
  });
});

describe("decoded values own their memory", () => {
  test("bytes do not change with the input", () => {
    const bytes = encodeUpdateWeightsFromTensorReqInput({
      serializedNamedTensors: [Uint8Array.of(1, 2, 3), new Uint8Array(300).fill(7)],
      loadFormat: null,
      flushCache: true,
    });
    for (const input of [bytes, Buffer.from(bytes)]) {
      const { serializedNamedTensors } = decodeUpdateWeightsFromTensorReqInput(input);
      const ext = decodeAny(encodeAny(new Ext(5, Uint8Array.of(4)))) as Ext;
      input.fill(0);
      expect(serializedNamedTensors).toEqual([Uint8Array.of(1, 2, 3), new Uint8Array(300).fill(7)]);
      expect(serializedNamedTensors.every((item) => item.constructor === Uint8Array && item.buffer.byteLength === item.length)).toBe(true);
      expect(ext.data).toEqual(Uint8Array.of(4));
    }
  });

  test("text does not change with the input, nor with what was decoded before", () => {
    const bytes = encodeAny(names(50));
    const decoded = decodeAny(bytes);
    const copy = Uint8Array.from(bytes);
    copy.fill(0x78, 5);
    expect(decoded).toEqual(names(50));
  });

  test("texts that share a place in the store of repeated ones stay apart", () => {
    // Same length, first, middle and last byte.
    const alike = Array.from({ length: 300 }, (_, i) => `a${String(i).padStart(4, "0")}m${String(i).padStart(4, "0")}z`);
    for (let round = 0; round < 2; round++) {
      for (const text of alike) expect(decodeAny(encodeAny({ [text]: text }))).toEqual({ [text]: text });
    }
  });
});

test("importing the modules has no effect but their exports", async () => {
  vi.resetModules();
  const before = Object.getOwnPropertyNames(globalThis);
  await import("../../../src/messages.ts");
  expect(Object.getOwnPropertyNames(globalThis)).toEqual(before);
});
