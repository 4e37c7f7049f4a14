import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as messages from "../../src/messages.ts";
import { decodeStruct, encodeStruct, structOf } from "../vectors/message.ts";
import { fromHex, type Noted, toHex } from "../vectors/notation.ts";
import { codeOf } from "./error-code.ts";
import { Msgspec, missing } from "./msgspec-service.ts";
import { structSamples } from "./samples.ts";
import { structs } from "./schema-structs.ts";

const seed = Number(process.env.ENGINEWIRE_SEED ?? Date.now() % 2 ** 31);
/** Values of each of the 38 structs that Python makes. */
const fromPython = 300;
/** Values that we make: case P04 asks for 1,000 of each request. */
const fromUs = { request: 1000, reply: 300, handshake: 300 };
const all = [...structs.keys()];
const requests = all.filter((name) => /Req(Input)?$/.test(name));
const kindOf = (name: string) => (requests.includes(name) ? "request" : name.endsWith("ReqOutput") ? "reply" : "handshake");
const counts = { fromUs: 0, fromPython: 0, unsafe: 0, integralFloats: 0 };

/** Whether an integral float is inside `any`, the one value that a number does not bring back. Typed floats are no exception. */
function holdsIntegralFloat(value: Noted): boolean {
  return JSON.stringify(value)
    .replace(/"kv_cache_max_concurrency":\{[^}]*\}/, "")
    .includes('"$float"');
}

describe.skipIf(missing !== undefined)("every message against real msgspec", () => {
  let python: Msgspec;
  beforeAll(() => {
    console.log(`msgspec: seed ${seed} (ENGINEWIRE_SEED repeats it)`);
    python = new Msgspec();
  });
  afterAll(async () => {
    await python.stop();
    console.log(`msgspec: ${JSON.stringify(counts)}`);
  });

  test("the classes and the schema have the same structs with the same fields, required ones at the same places", async () => {
    const theirs = await python.ask("structs", {});
    const ours = all.map((name) => {
      const fields = structs.get(name)?.fields ?? [];
      const named = fields.map((field) => ({ name: field.name === "kind" ? "type" : field.name, required: !("default" in field) }));
      return [name, { kind: kindOf(name), fields: named }] as const;
    });
    expect(Object.fromEntries(ours)).toEqual(theirs);
    expect(all).toHaveLength(38);
  });

  test.each(all)("P04 %s: Python decodes what we encode to what was given, and encodes it to the same bytes", async (name) => {
    const samples = fc.sample(structSamples(name), { seed, numRuns: fromUs[kindOf(name)] });
    const encoded = samples.map(({ give }) => encodeStruct(messages, name, give));
    const hex = encoded.map(toHex);
    const readers = { request: ["requests"], reply: ["replies"], handshake: [] }[kindOf(name)];
    for (const decoder of [name, ...readers]) {
      const outcomes = await python.ask("decode", { decoder, messages: hex });
      const wrong = samples.flatMap(({ see }, index) => {
        const outcome = outcomes[index];
        if (!outcome?.ok) return [`${hex[index]}: ${outcome?.error}`];
        if (outcome.hex !== hex[index]) return [`${hex[index]} comes back as ${outcome.hex}`];
        if (outcome.type !== name) return [`${hex[index]} is a ${outcome.type}`];
        return isDeepStrictEqual(structOf(name, outcome.value, false), see) ? [] : [`${hex[index]} is another value`];
      });
      expect(wrong.slice(0, 3)).toEqual([]);
      expect(outcomes).toHaveLength(samples.length);
    }
    const unlike = samples.filter(({ see }, index) => !isDeepStrictEqual(decodeStruct(messages, name, encoded[index] as Uint8Array), see));
    expect(unlike.slice(0, 1)).toEqual([]);
    counts.fromUs += samples.length;
  });

  test.each(all)("%s: we decode what Python encodes to its value, and encode it to the same bytes", async (name) => {
    const made = await python.ask("make", { type: name, seed, count: fromPython });
    const wrong = made.flatMap(({ hex, value, unsafe }) => {
      const given = structOf(name, value, true);
      if (unsafe) {
        counts.unsafe += 1;
        const codes = [codeOf(() => decodeStruct(messages, name, fromHex(hex))), codeOf(() => encodeStruct(messages, name, given))];
        return codes.every((code) => code === "unsafe_integer") ? [] : [`${hex}: ${codes}`];
      }
      const decoded = decodeStruct(messages, name, fromHex(hex));
      if (!isDeepStrictEqual(decoded, structOf(name, value, false))) return [`${hex} decodes to another value`];
      const encoded = toHex(encodeStruct(messages, name, given));
      if (encoded !== hex) return [`the value of ${hex} encodes to ${encoded}`];
      const again = toHex(encodeStruct(messages, name, decoded));
      if (again === hex) return [];
      counts.integralFloats += 1;
      return holdsIntegralFloat(value) ? [] : [`${hex} comes back as ${again}`];
    });
    expect(wrong.slice(0, 3)).toEqual([]);
    counts.fromPython += made.length;
  });

  test("at least 10,000 values went each way", () => {
    expect(counts.fromUs).toBeGreaterThanOrEqual(10_000);
    expect(counts.fromPython).toBeGreaterThanOrEqual(10_000);
    // the exceptions must stay exceptions
    expect(counts.unsafe).toBeGreaterThan(0);
    expect(counts.unsafe + counts.integralFloats).toBeLessThan(counts.fromPython / 5);
  });
});
