import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as messages from "../../src/messages.ts";
import { Ext, float } from "../../src/wire/index.ts";
import { decodeStruct, encodeStruct, structOf } from "../vectors/message.ts";
import { fromHex, fromNotation, type Noted, toHex } from "../vectors/notation.ts";
import { codeOf, errorOf } from "./error-code.ts";
import { difference, Msgspec, missing, type Outcome } from "./msgspec-service.ts";
import { type FieldDefinition, structs, type WireType } from "./schema-structs.ts";

const innermost = (type: WireType): WireType =>
  type.kind === "nullable" ? innermost(type.inner) : type.kind === "list" ? innermost(type.item) : type;
const fieldsWith = (kind: WireType["kind"]) =>
  [...structs.values()].flatMap(({ name, fields }) =>
    fields.filter(({ type }) => (type.kind === "nullable" ? type.inner.kind : type.kind) === kind).map((field) => ({ name, field })),
  );
const pythonName = ({ name }: FieldDefinition) => (name === "kind" ? "type" : name);

describe.skipIf(missing !== undefined)("cases that ask Python", () => {
  let python: Msgspec;
  let bases: Map<string, Noted>;
  beforeAll(async () => {
    python = new Msgspec();
    // a valid value of every struct, from the real class
    const tries = await python.ask("matrix", { values: [null] });
    bases = new Map(tries.map(({ name, base }) => [name, base]));
  });
  afterAll(() => python.stop());

  /** A valid value with one property replaced, as an encoder takes it. */
  const initWith = (name: string, field: FieldDefinition, value: unknown) => ({
    ...structOf(name, bases.get(name) ?? null, true),
    [field.property]: value,
  });
  /** A field of type float takes numbers alone: neither float() nor bigint. */
  const asGiven = (given: Noted, { type }: FieldDefinition): unknown => {
    const value = fromNotation(given, innermost(type).kind !== "f64");
    return innermost(type).kind === "f64" && typeof value === "bigint" ? Number(value) : value;
  };
  const readByPython = async (decoder: string, bytes: Uint8Array): Promise<Outcome> => {
    const [outcome] = await python.ask("decode", { decoder, messages: [toHex(bytes)] });
    return outcome ?? expect.unreachable();
  };
  const valueIn = (outcome: Outcome, field: FieldDefinition): Noted =>
    outcome.ok ? ((outcome.value as Record<string, Noted>)[pythonName(field)] ?? null) : expect.unreachable(outcome.error);

  const wide: Noted = { $int: "9007199254740992" };
  const values: readonly Noted[] = [
    ...[null, true, false, 0, 1, -1, 2, 3, 70_000, 1.5, wide, { $float: "0.0" }, { $float: "1.0" }, { $float: "NaN" }],
    ...["", "1", "wait", "pause", "START_PROFILE", "start", { $bytes: "" }, { $bytes: "31" }, { $ext: [5, "00"] }],
    ...[[], ["a"], [1], [1.5], [null], [true], ["a", null], [[]], [[1]], [["a"]], [[null]], [{ $bytes: "31" }]],
    ...[{}, { a: 1 }, { status: "HELLO" }, { $map: [[1, 1]] }, { $map: [[null, null]] }, { a: [{ b: null }] }],
  ] as Noted[];

  test("P05, P06: every value at the place of every field is accepted or refused as Python does, by the decoder", async () => {
    const tries = await python.ask("matrix", { values });
    expect(tries.flatMap((tried) => difference(tried.name, tried.message, tried) ?? [])).toEqual([]);
    expect(tries.some(({ ok }) => ok) && tries.some(({ ok }) => !ok)).toBe(true);
    const fields = [...structs.values()].reduce((sum, struct) => sum + struct.fields.length, 0);
    expect(tries).toHaveLength(fields * values.length);
    console.log(`P05: ${tries.length} fields with a value, ${tries.filter(({ ok }) => ok).length} of them accepted`);
  });

  test("P05: the encoder refuses, with a path, what Python would refuse, and what it lets out Python takes for what was given", async () => {
    const wrong: string[] = [];
    const sent = new Map<string, { readonly hex: string; readonly says: string; readonly value: Noted }[]>();
    for (const { name, field: wireName, given, ...outcome } of await python.ask("matrix", { values })) {
      const field = structs.get(name)?.fields.find((candidate) => pythonName(candidate) === wireName) ?? expect.unreachable(wireName);
      const says = `${name}.${wireName} = ${JSON.stringify(given)}`;
      let encoded: Uint8Array | undefined;
      const error = errorOf(() => {
        encoded = encodeStruct(messages, name, initWith(name, field, asGiven(given, field)));
      });
      const code = error?.code;
      if (error !== undefined && !error.path?.startsWith(`${name}.${field.name}`)) wrong.push(`${says}: refused at ${error.path}`);
      // stated exceptions: integers out of the safe range, and a nested struct's unknown keys, which decoders skip
      if (code === "unsafe_integer" || code === "unknown_field") continue;
      if ((code === undefined) !== outcome.ok) wrong.push(`${says}: ${code ?? "accepted"}, Python ${outcome.ok}`);
      else if (encoded !== undefined && outcome.ok) {
        sent.set(name, [...(sent.get(name) ?? []), { hex: toHex(encoded), says, value: outcome.value }]);
      }
    }
    for (const [name, encodings] of sent) {
      const outcomes = await python.ask("decode", { decoder: name, messages: encodings.map(({ hex }) => hex) });
      for (const [index, { says, value }] of encodings.entries()) {
        const outcome = outcomes[index];
        if (!outcome?.ok || !isDeepStrictEqual(outcome.value, value)) wrong.push(`${says} arrives as ${JSON.stringify(outcome)}`);
      }
    }
    expect(wrong).toEqual([]);
    expect([...sent.values()].flat().length).toBeGreaterThan(500);
  });

  test("P01: shorter and longer messages of every struct give what they give in Python", async () => {
    const tries = await python.ask("tails", { seed: 1, count: 5 });
    expect(tries.flatMap((tried) => difference(tried.name, tried.message, tried) ?? [])).toEqual([]);
    const [refused, accepted] = [tries.filter(({ ok }) => !ok), tries.filter(({ ok }) => ok)];
    expect(Math.min(refused.length, accepted.length)).toBeGreaterThan(100);
    // a missing element is named
    const codes = new Set(refused.map(({ name, message }) => codeOf(() => decodeStruct(messages, name, fromHex(message)))));
    expect([...codes].sort()).toEqual(["malformed", "missing_field"]);
    console.log(`P01: ${accepted.length} accepted, ${refused.length} refused`);
  });

  test("P10: all positions are written, also where a class asks to leave defaults out", async () => {
    for (const { name, tagged, fields } of structs.values()) {
      if (!tagged) continue;
      const required = Object.entries(bases.get(name) as Record<string, Noted>).filter(([wireName]) =>
        fields.some((field) => pythonName(field) === wireName && !("default" in field)),
      );
      const { hex } = await python.ask("omitting", { type: name, fields: Object.fromEntries(required) });
      const init = structOf(name, Object.fromEntries(required), true);
      expect(toHex(encodeStruct(messages, name, init)), name).toBe(hex);
    }
  });

  test("M05: an argument left out is what the class's own constructor makes of it", async () => {
    let left = 0;
    for (const { name, fields } of structs.values()) {
      for (const field of fields.filter((candidate) => "default" in candidate)) {
        const given = Object.fromEntries(
          Object.entries(bases.get(name) as Record<string, Noted>).filter(([key]) => key !== pythonName(field)),
        );
        // the class makes nested structs only from instances
        if ("addresses" in given) continue;
        const { hex } = await python.ask("construct", { type: name, fields: given });
        for (const init of [structOf(name, given, true), { ...structOf(name, given, true), [field.property]: undefined }]) {
          expect(toHex(encodeStruct(messages, name, init)), `${name}.${field.name}`).toBe(hex);
        }
        left += 1;
      }
    }
    expect(left).toBeGreaterThan(100);
  });

  test("M03: integer fields take integers only and keep them, float fields always send floats", async () => {
    for (const { name, field } of fieldsWith("i64")) {
      const bytes = encodeStruct(messages, name, initWith(name, field, 1));
      expect(valueIn(await readByPython(name, bytes), field)).toBe(1);
      expect(toHex(encodeStruct(messages, name, initWith(name, field, 1n)))).toBe(toHex(bytes));
      for (const refused of [2 ** 53, 2n ** 60n])
        expect(codeOf(() => encodeStruct(messages, name, initWith(name, field, refused)))).toBe("unsafe_integer");
      for (const refused of [1.5, float(1)])
        expect(codeOf(() => encodeStruct(messages, name, initWith(name, field, refused)))).toBe("invalid_value");
    }
    for (const { name, field } of fieldsWith("f64")) {
      for (const [given, read] of [
        [1, "1.0"],
        [2 ** 53, "9007199254740992.0"],
        [1e300, "1e+300"],
      ] as const) {
        const outcome = await readByPython(name, encodeStruct(messages, name, initWith(name, field, given)));
        expect(valueIn(outcome, field)).toEqual({ $float: read });
      }
      expect(codeOf(() => encodeStruct(messages, name, initWith(name, field, 2n ** 60n)))).toBe("invalid_value");
    }
    expect(fieldsWith("i64").length + fieldsWith("f64").length).toBeGreaterThan(15);
    const args = { whole: 1, forced: float(1), half: 0.5, large: 2n ** 60n };
    const outcome = await readByPython("SetInternalStateReq", messages.encodeSetInternalStateReq({ serverArgs: args }));
    expect(outcome).toMatchObject({
      value: { server_args: { whole: 1, forced: { $float: "1.0" }, half: 0.5, large: { $int: String(2n ** 60n) } } },
    });
  });

  test("M01: integers from Python come as numbers within the safe range and as bigint beyond, by value", async () => {
    const edges = [5, 7, 8, 15, 16, 31, 32, 52, 53, 63].flatMap((bits) => [
      2n ** BigInt(bits) - 1n,
      2n ** BigInt(bits),
      -(2n ** BigInt(bits)),
    ]);
    const integers = [...edges, 2n ** 53n + 1n, 2n ** 64n - 1n, 0n];
    const state = { integers: integers.map((value) => ({ $int: String(value) })) };
    const { hex } = await python.ask("construct", { type: "GetInternalStateReqOutput", fields: { internal_state: state } });
    const seen = integers.map((value) => (Number.isSafeInteger(Number(value)) ? Number(value) : value));
    const reply = messages.decodeGetInternalStateReqOutput(fromHex(hex));
    expect(isDeepStrictEqual(reply.internalState, { integers: seen })).toBe(true);
    expect(toHex(messages.encodeGetInternalStateReqOutput(reply))).toBe(hex);
  });

  test("M06: keys that name parts of objects arrive unchanged and touch no prototype", async () => {
    const keys = ["__proto__", "constructor", "toString", "hasOwnProperty", "", "0"];
    const internal: Noted = { $map: keys.map((key) => [key, { $map: [["__proto__", { polluted: true }]] }]) };
    const { hex } = await python.ask("construct", { type: "GetInternalStateReqOutput", fields: { internal_state: internal } });
    const reply = messages.decodeGetInternalStateReqOutput(fromHex(hex));
    expect([...(reply.internalState as Map<string, unknown>).keys()]).toEqual(keys);
    expect("polluted" in {}).toBe(false);
    expect(toHex(messages.encodeGetInternalStateReqOutput(reply))).toBe(hex);
  });

  test("P06: every member of the literals and the enum is Python's, and nothing else is", async () => {
    for (const { name, field } of fieldsWith("literal")) {
      const members = field.type.kind === "literal" ? field.type.values : [];
      for (const member of members) {
        expect(valueIn(await readByPython(name, encodeStruct(messages, name, initWith(name, field, member))), field)).toBe(member);
      }
      for (const other of ["pause", "", "START_PROFILE", 0, 3, 1.5, null, true]) {
        expect(codeOf(() => encodeStruct(messages, name, initWith(name, field, other)))).toBe("invalid_value");
      }
    }
    expect(fieldsWith("literal").map(({ name }) => name)).toEqual(["PauseSchedulerReqInput", "ProfileReq"]);
    const { PROFILE_START: start, PROFILE_STOP: stop } = messages;
    expect([start, stop]).toEqual([1, 2]);
  });

  test("P09: a time of Python's stays the extension it travels as, and text stays text; a Date does not leave", async () => {
    const fields = { internal_state: { aware: { $time: "aware" }, naive: { $time: "naive" } } };
    const { hex } = await python.ask("construct", { type: "GetInternalStateReqOutput", fields });
    const reply = messages.decodeGetInternalStateReqOutput(fromHex(hex));
    expect(reply.internalState).toEqual({ aware: expect.any(Ext), naive: "2026-08-22T01:02:03.456789" });
    expect((reply.internalState as { aware: Ext }).aware.type).toBe(-1);
    expect(toHex(messages.encodeGetInternalStateReqOutput(reply))).toBe(hex);
    expect(codeOf(() => messages.encodeSetInternalStateReq({ serverArgs: { at: new Date() } }))).toBe("invalid_value");
    const sent = messages.encodeSetInternalStateReq({ serverArgs: { at: new Ext(-1, fromHex("6ce83020")) } });
    expect(await readByPython("requests", sent)).toMatchObject({
      value: { server_args: { at: { $time: expect.stringContaining("+00:00") } } },
    });
  });
});
