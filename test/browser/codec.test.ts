import { describe, expect, test } from "vitest";
import * as messages from "../../src/messages.ts";
import { Ext, isEngineWireError } from "../../src/wire/index.ts";
import { nativeText } from "../../src/wire/native-text.ts";
import type { Vector } from "../vectors/notation.ts";
import { type Report, runCanonical, runDiffer, runLenient, runReject } from "../vectors/run.ts";

const files = import.meta.glob<Vector[]>("../vectors/*.json", { import: "default" });

function load(name: string): Promise<Vector[]> {
  const file = files[`../vectors/${name}.json`];
  if (file === undefined) throw new Error(`no vectors ${name}`);
  return file();
}

/** Equality of decoded values: exact about -0, bigints, Maps with their order, bytes and extensions. */
function equals(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return Object.is(one, other);
  if (one instanceof Map || other instanceof Map) return one instanceof Map && other instanceof Map && equals([...one], [...other]);
  if (one instanceof Ext !== other instanceof Ext || one instanceof Uint8Array !== other instanceof Uint8Array) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const [left, right] = [Object.entries(one), Object.entries(other)];
  return left.length === right.length && left.every(([key, value], i) => key === right[i]?.[0] && equals(value, right[i]?.[1]));
}

test("this is a browser, without Node's string methods", () => {
  expect(typeof document).toBe("object");
  expect(nativeText).toBeNull();
});

describe.each<readonly [file: string, run: (vectors: Vector[]) => Report, considered: number, unsafe: number]>([
  ["control-requests", (vectors) => runCanonical(messages, vectors, equals), 179, 11],
  ["control-replies", (vectors) => runCanonical(messages, vectors, equals), 138, 2],
  ["handshake", (vectors) => runCanonical(messages, vectors, equals), 49, 3],
  ["generate", (vectors) => runCanonical(messages, vectors, equals), 88, 3],
  ["abort", (vectors) => runCanonical(messages, vectors, equals), 15, 0],
  ["output-batches", (vectors) => runCanonical(messages, vectors, equals), 53, 4],
  ["decode-lenient", (vectors) => runLenient(messages, vectors, equals), 213, 16],
  ["decode-reject", (vectors) => runReject(messages, vectors), 944, 0],
  ["decode-differ", (vectors) => runDiffer(messages, vectors, equals), 47, 0],
])("%s", (file, run, considered, unsafe) => {
  test(`${considered} entries in Chromium`, async () => {
    const report = run(await load(file));
    expect(report.failures).toEqual([]);
    expect([report.considered, report.unsafe]).toEqual([considered, unsafe]);
  });
});

describe("long lists, which are written and read as a whole", () => {
  const names = Array.from({ length: 3000 }, (_, i) => `model.layers.${i % 94}.mlp.experts.${i}.down_proj.weight`);

  test.each([
    ["ASCII", names],
    ["one name that is not ASCII", [...names, "naïve", ...names]],
    ["names of 128 to 159 bytes, whose headers are no Latin-1 letters", names.map((name, i) => name.padEnd(128 + (i % 32), "x"))],
    ["equal neighbours", names.map((_, i) => (i % 10 === 9 ? "float32" : "bfloat16"))],
  ])("%s", (_, list) => {
    const bytes = messages.encodeReleaseMemoryOccupationReqInput({ tags: list });
    expect(messages.decodeReleaseMemoryOccupationReqInput(bytes).tags).toEqual(list);
  });

  test("a lone surrogate among them is refused with its place", () => {
    const tags = [...names, "\ud800", ...names];
    expect(() => messages.encodeReleaseMemoryOccupationReqInput({ tags })).toThrow(
      "invalid_value: ReleaseMemoryOccupationReqInput.tags[3000]",
    );
  });
});

test("bytes to a worker and back: a transferred message does not break the next", async () => {
  const bytes = messages.encodePauseSchedulerReqInput({ mode: "wait" });
  const copy = Uint8Array.from(bytes);
  const { port1, port2 } = new MessageChannel();
  const received = new Promise<Uint8Array>((resolve) => {
    port2.onmessage = ({ data }) => resolve(data as Uint8Array);
  });
  port1.postMessage(bytes, [bytes.buffer as ArrayBuffer]);
  expect(messages.decodePauseSchedulerReqInput(await received).mode).toBe("wait");
  expect(messages.encodePauseSchedulerReqInput({ mode: "wait" })).toEqual(copy);
  port1.close();
});

test("bytes of another frame's realm are bytes", () => {
  const frame = document.createElement("iframe");
  document.body.append(frame);
  const Foreign = (frame.contentWindow as unknown as { Uint8Array: typeof Uint8Array }).Uint8Array;
  const bytes = Foreign.from(messages.encodePauseSchedulerReqInput({ mode: "keep" }));
  expect(bytes).not.toBeInstanceOf(Uint8Array);
  expect(messages.decodePauseSchedulerReqInput(bytes).mode).toBe("keep");
  const init = { serializedNamedTensors: [bytes], loadFormat: null, flushCache: true };
  const decoded = messages.decodeUpdateWeightsFromTensorReqInput(messages.encodeUpdateWeightsFromTensorReqInput(init));
  expect(decoded.serializedNamedTensors[0]).toEqual(Uint8Array.from(bytes));
  frame.remove();
});

test("damaged input is one kind of error here as well", () => {
  for (const input of [[0xa1, 0xff], [0xdd, 0xff, 0xff, 0xff, 0xff], [0xc1], []]) {
    let caught: unknown;
    try {
      messages.decodeControlOutput(Uint8Array.from(input));
    } catch (error) {
      caught = error;
    }
    expect(isEngineWireError(caught) && caught.code).toBe("malformed");
  }
});
