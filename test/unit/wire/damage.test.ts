import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as messages from "../../../src/messages.ts";
import { isEngineWireError } from "../../../src/wire/errors.ts";
import { decodeAny } from "../../../src/wire/index.ts";
import { decodeFrames, decodeFromSocket, framesOf } from "../../vectors/message.ts";
import type { Vector } from "../../vectors/notation.ts";

const vectors = ["control-requests", "control-replies", "handshake", "generate", "abort", "output-batches"].flatMap(
  (file) => JSON.parse(readFileSync(new URL(`../../vectors/${file}.json`, import.meta.url), "utf8")) as Vector[],
);

/** What a decoder does with damaged bytes: it returns a value or throws the one error, and nothing else. */
function outcome(run: () => unknown): "value" | "error" | string {
  try {
    run();
    return "value";
  } catch (error) {
    return isEngineWireError(error) ? "error" : `${error}`;
  }
}

test("a message cut anywhere is refused", () => {
  let checks = 0;
  const wrong: string[] = [];
  for (const vector of vectors) {
    const [bytes = new Uint8Array(), ...aux] = framesOf(vector);
    // At every byte; of the few long ones, at fifty places each.
    const step = bytes.length < 2000 ? 1 : Math.floor(bytes.length / 50);
    for (let length = 0; length < bytes.length; length += step) {
      checks++;
      const cut = bytes.subarray(0, length);
      for (const decode of [
        () => decodeFrames(messages, vector.type, [cut, ...aux]),
        () => decodeFromSocket(messages, vector, [cut, ...aux]),
        () => decodeAny(cut),
      ]) {
        const result = outcome(decode);
        if (result !== "error") wrong.push(`${vector.name} cut at ${length}: ${result}`);
      }
    }
  }
  expect(wrong).toEqual([]);
  expect(checks).toBe(62_081);
});

test("a message with any byte changed decodes or is refused, and never does anything else", () => {
  const counts = { value: 0, error: 0 };
  const wrong: string[] = [];
  for (const vector of vectors) {
    const [bytes = new Uint8Array(), ...aux] = framesOf(vector);
    if (bytes.length > 250) continue;
    for (let place = 0; place < bytes.length; place++) {
      const original = bytes[place] as number;
      for (const changed of [original ^ 0x01, original ^ 0x20, original ^ 0x80, 0xc1, 0xdd, 0xdf, 0xdb, 0xc6, 0xff]) {
        bytes[place] = changed;
        const result = outcome(() => decodeFrames(messages, vector.type, [bytes, ...aux]));
        if (result === "value" || result === "error") counts[result]++;
        else wrong.push(`${vector.name} byte ${place} as ${changed}: ${result}`);
      }
      bytes[place] = original;
    }
  }
  expect(wrong).toEqual([]);
  expect(counts.error).toBeGreaterThan(counts.value);
  expect(counts.value).toBeGreaterThan(10_000);
});
