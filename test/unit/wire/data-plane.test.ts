import { Decoder, Encoder } from "@msgpack/msgpack";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type BatchTokenIDOutSlimInit,
  decodeAbortRids,
  decodeBatchTokenIDOutSlim,
  decodeTokenizedGenerateReqInput,
  encodeAbortRids,
  encodeBatchTokenIDOutSlim,
  encodeTokenizedGenerateReqInput,
} from "../../../src/messages.ts";
import { decodeAny, EngineWireError, encodeAny } from "../../../src/wire/index.ts";

function errorOf(run: () => unknown): EngineWireError {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(EngineWireError);
    return error as EngineWireError;
  }
  throw new Error("nothing was thrown");
}

/** Around the values at which an integer's format grows. */
const edge = fc
  .tuple(fc.constantFrom(5, 7, 8, 15, 16, 31, 32, 53), fc.constantFrom(-1, 0, 1), fc.constantFrom(1, -1))
  .map(([bits, off, sign]) => sign * (2 ** bits + off) || 0)
  .filter(Number.isSafeInteger);
const int32 = fc.oneof(
  fc.integer(),
  edge.filter((value) => (value | 0) === value),
);
const count = fc.oneof(edge, fc.nat({ max: 70_000 }), fc.maxSafeNat(), fc.maxSafeInteger());
const logprob = fc.double({ noNaN: true }).filter((value) => !Number.isInteger(value));
const rows = <Item>(item: fc.Arbitrary<Item>) => fc.array(item, { maxLength: 20 });
const tops = <Item>(item: fc.Arbitrary<Item>) => rows(fc.array(fc.array(item, { maxLength: 6 }), { maxLength: 6 }));
const nilTops = <Item>(item: fc.Arbitrary<Item>) => rows(fc.array(fc.option(fc.array(item, { maxLength: 6 })), { maxLength: 6 }));

/** The columns in wire order, with values that @msgpack/msgpack writes as this wire does. */
const columns = fc.tuple(
  fc.option(rows(fc.string({ unit: "grapheme", maxLength: 40 }))),
  rows(fc.array(int32, { maxLength: 70 })),
  rows(fc.constantFrom("", "stop", "length", "abort")),
  rows(count),
  rows(count),
  rows(count),
  rows(fc.array(logprob, { maxLength: 20 })),
  rows(fc.array(int32, { maxLength: 20 })),
  count,
  count,
  count,
  count,
  count,
  rows(fc.option(fc.record({ type: fc.string(), matched: fc.oneof(int32, fc.string()) }))),
  rows(count),
  rows(fc.option(logprob)),
  rows(fc.array(fc.option(logprob), { maxLength: 20 })),
  rows(fc.array(int32, { maxLength: 20 })),
  nilTops(logprob),
  nilTops(int32),
  tops(logprob),
  tops(int32),
);

const properties = `rids outputIds finishedReasons promptTokens completionTokens cachedTokens outputTokenLogprobsVal outputTokenLogprobsIdx
  engineIndex numRunning numWaiting kvActivePages kvTotalPages finishReasonDetails specVerifyCt acceptDraftTokens inputTokenLogprobsVal
  inputTokenLogprobsIdx inputTopLogprobsVal inputTopLogprobsIdx outputTopLogprobsVal outputTopLogprobsIdx`.split(/\s+/);

describe("output batches", () => {
  const tag = "BatchTokenIDOutSlim";

  test("have the properties that the schema's names give, in their order", () => {
    const batch = decodeBatchTokenIDOutSlim(encodeAny([tag, null, [], [], [], [], [], [], []]));
    expect(Object.keys(batch)).toEqual(["$tag", ...properties]);
  });

  test("encode and decode as an independent codec does", () => {
    fc.assert(
      fc.property(columns, (values) => {
        const init = Object.fromEntries(values.map((value, i) => [properties[i], value])) as unknown as BatchTokenIDOutSlimInit;
        const theirs = new Encoder().encode([tag, ...values]);
        const ours = encodeBatchTokenIDOutSlim(init);
        expect(Buffer.from(ours).toString("hex")).toBe(Buffer.from(theirs).toString("hex"));
        expect(new Decoder().decode(ours)).toEqual([tag, ...values]);
        expect(decodeBatchTokenIDOutSlim(theirs)).toEqual({ $tag: tag, ...init });
      }),
      { numRuns: 300 },
    );
  });

  test.each([8, 9, 13, 22])("may stop after %i columns", (length) => {
    fc.assert(
      fc.property(columns, (values) => {
        const batch = decodeBatchTokenIDOutSlim(new Encoder().encode([tag, ...values.slice(0, length)])) as unknown as {
          readonly [property: string]: unknown;
        };
        const fallback = (i: number): unknown => (i < 13 ? 0 : []);
        for (const [i, property] of properties.entries()) expect(batch[property]).toEqual(i < length ? values[i] : fallback(i));
      }),
      { numRuns: 30 },
    );
  });

  test("columns that are left out are lists of their own", () => {
    const bytes = encodeAny([tag, null, [], [], [], [], [], [], []]);
    const [one, other] = [decodeBatchTokenIDOutSlim(bytes), decodeBatchTokenIDOutSlim(bytes)];
    one.specVerifyCt.push(1);
    expect(other.specVerifyCt).toEqual([]);
  });

  test("integral logprobs are floats on the wire, and integers are read as floats", () => {
    const init = { rids: ["r"], outputIds: [[1]], finishedReasons: [""], promptTokens: [1], completionTokens: [1], cachedTokens: [0] };
    const batch = { ...init, outputTokenLogprobsVal: [[-1, -0]], outputTokenLogprobsIdx: [[1, 2]] };
    const bytes = encodeBatchTokenIDOutSlim(batch);
    expect(Buffer.from(bytes).toString("hex")).toContain("92cbbff0000000000000cb8000000000000000");
    expect(decodeBatchTokenIDOutSlim(bytes).outputTokenLogprobsVal).toEqual([[-1, -0]]);
    const loose = encodeAny([tag, ["r"], [[1]], [""], [1], [1], [0], [[-1, 0.5, 2n ** 60n]], [[1, 2, 3]]]);
    expect(decodeBatchTokenIDOutSlim(loose).outputTokenLogprobsVal).toEqual([[-1, 0.5, 2 ** 60]]);
  });

  test.each([
    ["prompt_tokens[2]", 4, [1, 2, 300]],
    ["prompt_tokens[1]", 4, [1, 200]],
    ["prompt_tokens[4]", 4, [1, 2, 3, 4, 70_000]],
    ["prompt_tokens[0]", 4, [2 ** 40]],
    ["output_ids[1][0]", 2, [[], [300]]],
    ["output_ids[0][1]", 2, [[1, 70_000]]],
    ["output_token_logprobs_val[0][2]", 7, [[0.5, 0.25, 0.125]]],
  ])("a batch that ends inside %s says so", (path, column, value) => {
    const values: unknown[] = [tag, null, [], [], [], [], [], []];
    values[column] = value;
    const whole = encodeAny(values.slice(0, column + 1));
    const error = errorOf(() => decodeBatchTokenIDOutSlim(whole.subarray(0, whole.length - 1)));
    expect(error).toMatchObject({ code: "malformed", path: `${tag}.${path}`, found: "the end of the message", offset: whole.length - 1 });
  });

  test.each<readonly [path: string, column: number, value: unknown, code: string]>([
    ["rids[1]", 1, ["a", 1], "malformed"],
    ["rids[8]", 1, ["a", "b", "c", "d", "e", "f", "g", "h", 1], "malformed"],
    ["output_ids[1][2]", 2, [[], [1, 2, 2 ** 31]], "malformed"],
    ["output_ids[0][0]", 2, [[-(2 ** 31) - 1]], "malformed"],
    ["output_ids[0][1]", 2, [[1, null]], "malformed"],
    ["output_ids[70][0]", 2, [...Array.from({ length: 70 }, () => [1]), ["x"]], "malformed"],
    ["output_ids[0][99]", 2, [[...Array.from({ length: 99 }, (_, i) => i * 7), true]], "malformed"],
    ["prompt_tokens[2]", 4, [1, 300, 1.5], "malformed"],
    ["prompt_tokens[1]", 4, [1, 2n ** 53n], "unsafe_integer"],
    ["output_token_logprobs_val[0][1]", 7, [[0.5, "x"]], "malformed"],
    ["output_token_logprobs_val[1]", 7, [[0.5], null], "malformed"],
    ["engine_index", 9, 2n ** 63n, "unsafe_integer"],
    ["finish_reason_details[1]", 14, [null, "stop"], "malformed"],
    ["accept_draft_tokens[1]", 16, [null, true], "malformed"],
    ["input_top_logprobs_val[0][1][0]", 19, [[null, [false]]], "malformed"],
    ["output_top_logprobs_idx[0][0][1]", 22, [[[1, 2 ** 40]]], "malformed"],
  ])("a wrong value at %s", (path, column, value, code) => {
    const values: unknown[] = [tag, null, [], [], [], [], [], [], [], 0, 0, 0, 0, 0, [], [], [], [], [], [], [], [], []];
    values[column] = value;
    expect(errorOf(() => decodeBatchTokenIDOutSlim(encodeAny(values)))).toMatchObject({ code, path: `${tag}.${path}` });
    const init = Object.fromEntries(properties.map((property, i) => [property, values[i + 1]])) as unknown as BatchTokenIDOutSlimInit;
    const error = errorOf(() => encodeBatchTokenIDOutSlim(init));
    expect(error.path).toBe(`${tag}.${path}`);
    expect(["invalid_value", "unsafe_integer"]).toContain(error.code);
  });
});

describe("generate requests", () => {
  test("at their defaults have 25 elements, and parameters 29", () => {
    const [payload] = encodeTokenizedGenerateReqInput({ rid: "r", inputIds: [1], samplingParams: {} });
    const elements = decodeAny(payload) as unknown[];
    expect(elements).toHaveLength(25);
    expect(elements[5]).toHaveLength(29);
  });

  test("encode token ids and parameters as an independent codec does", () => {
    const ids = fc.array(int32, { maxLength: 200 });
    fc.assert(
      fc.property(ids, ids, fc.array(count), fc.dictionary(fc.stringMatching(/^[a-z]+$/), logprob), (inputIds, unpadded, stopIds, bias) => {
        const [payload] = encodeTokenizedGenerateReqInput({
          inputIds,
          inputIdsUnpadded: unpadded,
          samplingParams: { stopTokenIds: stopIds, logitBias: bias },
        });
        const elements = new Decoder().decode(payload) as unknown[];
        expect([elements[4], elements[21]]).toEqual([inputIds, unpadded]);
        expect((elements[5] as unknown[])[2]).toEqual(stopIds);
        expect((elements[5] as unknown[])[22]).toEqual(bias);
        const { samplingParams, ...decoded } = decodeTokenizedGenerateReqInput([payload]);
        expect([decoded.inputIds, decoded.inputIdsUnpadded]).toEqual([inputIds, unpadded]);
        expect([samplingParams.stopTokenIds, samplingParams.logitBias]).toEqual([stopIds, bias]);
      }),
      { numRuns: 200 },
    );
  });

  test.each<readonly [path: string, init: object]>([
    ["sampling_params", { samplingParams: undefined }],
    ["sampling_params.temperature", { samplingParams: { temperature: "1" } }],
    ["sampling_params.stop_token_ids[1]", { samplingParams: { stopTokenIds: [1, 1.5] } }],
    ["sampling_params.logit_bias.a", { samplingParams: { logitBias: { a: null } } }],
    ["sampling_params.temprature", { samplingParams: { temprature: 1 } }],
    ["input_ids[2]", { inputIds: [1, 2, 2 ** 31] }],
    ["input_ids[100]", { inputIds: [...Array.from({ length: 100 }, (_, i) => i), "1"] }],
    ["session_params.offset", { sessionParams: { offset: 0.5 } }],
    ["bootstrap_room", { bootstrapRoom: -1n }],
    ["multimodal_inputs.mm_items[0].modality", { multimodalInputs: { mmItems: [{ modality: 4 }] } }],
    ["multimodal_inputs.mm_items[0].offsets[1]", { multimodalInputs: { mmItems: [{ modality: 1, offsets: [[1, 2], [3]] }] } }],
  ])("a wrong value at %s", (path, init) => {
    const error = errorOf(() => encodeTokenizedGenerateReqInput({ rid: "r", samplingParams: {}, ...init } as never));
    expect(error.path).toBe(`TokenizedGenerateReqInput.${path}`);
  });
});

describe("lists of requests to abort", () => {
  test("are a bare list", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme" })), (rids) => {
        const bytes = encodeAbortRids(rids);
        expect(Buffer.from(bytes).toString("hex")).toBe(Buffer.from(new Encoder().encode(rids)).toString("hex"));
        expect(decodeAbortRids(bytes)).toEqual(rids);
      }),
    );
  });

  test.each<readonly [value: unknown, path: string]>([
    ["r", "AbortRids"],
    [null, "AbortRids"],
    [{ 0: "r" }, "AbortRids"],
    [["r", 1], "AbortRids[1]"],
    [[..."abcdefgh", ["r"]], "AbortRids[8]"],
  ])("refuse %j", (value, path) => {
    expect(errorOf(() => decodeAbortRids(encodeAny(value)))).toMatchObject({ code: "malformed", path });
    expect(errorOf(() => encodeAbortRids(value as never))).toMatchObject({ code: "invalid_value", path });
  });

  test("hold whole texts only, and nothing behind the list", () => {
    expect(errorOf(() => encodeAbortRids(["\ud800"])).path).toBe("AbortRids[0]");
    expect(errorOf(() => decodeAbortRids(Uint8Array.of(0x90, 0x90))).code).toBe("malformed");
  });
});
