import { readFileSync } from "node:fs";
import { encode } from "@msgpack/msgpack";
import { describe, expect, test } from "vitest";
import { readEngineMessage } from "../../../src/testing/engine-message.ts";
import { quoted, quotedList } from "../../../src/testing/texts.ts";

const limits = { maxModelLen: 100, outputLogprobs: false };

function read(type: number, payload: unknown, outputLogprobs = false): unknown {
  return readEngineMessage([Uint8Array.of(type), encode(payload, { useBigInt64: true })], { ...limits, outputLogprobs });
}

/** An ADD with these sampling parameters and fields by position. */
function generate(
  inputIds: unknown,
  sampling: Record<number, unknown> = {},
  fields: Record<number, unknown> = {},
  outputLogprobs = false,
): unknown {
  const params: unknown[] = [5, null, null, 1, 1, -1, 0, 0, 0, 1, 0, null, null, null, null, false, true, true, false, null, null];
  params.push(null, null, null, null, 1);
  for (const [position, value] of Object.entries(sampling)) params[Number(position)] = value;
  const values: unknown[] = ["TokenizedGenerateReqInput", "r", null, null, inputIds, params, false, -1, 0, null, true];
  for (let position = 11; position < 25; position += 1) values[position] = position === 14 ? false : position === 15 ? 0 : null;
  for (const [position, value] of Object.entries(fields)) values[Number(position)] = value;
  return read(0, values, outputLogprobs);
}

describe("control operations are read as the engine reads them", () => {
  test("any string is a pause mode and any integer a profile kind", () => {
    expect(read(2, ["PauseSchedulerReqInput", null, null, "bogus"])).toMatchObject({ request: { mode: "bogus" } });
    expect(read(2, ["PauseSchedulerReqInput", null, null, ""])).toMatchObject({ request: { mode: "" } });
    expect(read(2, ["ProfileReq", null, null, 3])).toMatchObject({ request: { kind: 3, outputDir: null } });
  });

  test("a short array takes the defaults, a missing mode is abort", () => {
    expect(read(2, ["PauseSchedulerReqInput"])).toMatchObject({ request: { mode: "abort", rid: null } });
  });

  test.each([
    ["a mode that is an integer", ["PauseSchedulerReqInput", null, null, 5]],
    ["a mode that is nil", ["PauseSchedulerReqInput", null, null, null]],
    ["a bad rid beside a bad mode", ["PauseSchedulerReqInput", 5, null, "bogus"]],
    ["a kind with a fraction", ["ProfileReq", null, null, 1.5]],
    ["a reply's tag", ["IsSleepingReqOutput", null, null, true]],
    ["a generate request", ["TokenizedGenerateReqInput", "x", null, null, [1], [1]]],
    ["a map", { tag: "IsSleepingReqInput" }],
  ])("%s is malformed", (_, payload) => {
    expect(() => read(2, payload)).toThrow();
  });
});

describe("generate requests", () => {
  test("are admitted with their budget clamped to the context", () => {
    expect(generate([1, 2, 3])).toMatchObject({ kind: "add", admission: { rid: "r", prompt: [1, 2, 3], maxNewTokens: 5, stream: true } });
    expect(generate([1, 2, 3], { 0: null })).toMatchObject({ admission: { maxNewTokens: 95 } });
    expect(generate([1, 2, 3], { 0: 1000 })).toMatchObject({ admission: { maxNewTokens: 95 } });
    expect(generate(Array(94).fill(1), { 0: 50 })).toMatchObject({ kind: "add", admission: { maxNewTokens: 4 } });
  });

  test.each([
    ["the prompt has 95 tokens; this engine admits at most 94", Array(95).fill(1), {}, {}],
    ["a request needs prompt token ids", null, {}, {}],
    ["n=2 is not supported on the msgpack wire; the frontend must fan out n > 1 itself", [1], { 25: 2 }, {}],
    ["logprobs were requested but the server was started without --enable-output-logprobs", [1], {}, { 6: true }],
    ["top_p must be in (0, 1], got 1.5.", [1], { 4: 1.5 }, {}],
    ["top_k must be < 128 (fused kernel limit) or -1 (disable), got 200.", [1], { 5: 200 }, {}],
    ["min_new_tokens must be in (0, max_new_tokens(5)], got 9.", [1], { 10: 9 }, {}],
    ["max_new_tokens must be at least 0, got -1.", [1], { 0: -1 }, {}],
    ["logit_bias must has keys in [0, 99999], got 500000.", [1], { 22: { 500000: 1 } }, {}],
    ["stop strings are not matched on the msgpack wire; the frontend matches them and sends stop_token_ids only", [1], { 1: "x" }, {}],
    ["session id s does not exist", [1], {}, { 12: ["s", null, null, null, null] }],
    ["hidden states are not supported by this engine host", [1], {}, { 14: true }],
    ["bad thing", [1], {}, { 23: "bad thing" }],
  ])("%s", (message, inputIds, sampling, fields) => {
    expect(generate(inputIds, sampling, fields)).toMatchObject({ kind: "refused", rid: "r", message });
  });

  describe("logprobs, where the engine has them", () => {
    const scored = (fields: object, maxNewTokens: number | null = 1, inputIds: unknown = [1, 2, 3]) =>
      generate(inputIds, { 0: maxNewTokens }, { 6: true, ...fields }, true);

    test.each([
      [{}, { start: 2, top: 0 }],
      [{ 7: 0 }, { start: 0, top: 0 }],
      [
        { 7: 2, 8: 20 },
        { start: 2, top: 20 },
      ],
      [{ 9: [] }, { start: 2, top: 0 }],
    ])("%o: %o", (fields, logprobs) => {
      expect(scored(fields)).toMatchObject({ kind: "add", admission: { logprobs } });
    });

    test("are not computed unless asked for, whatever else is set", () => {
      expect(generate([1], {}, { 7: 5, 8: 99, 9: [1] }, true)).toMatchObject({ kind: "add", admission: { logprobs: undefined } });
      expect(generate([1], { 24: 0 }, {}, true)).toMatchObject({ kind: "add", admission: { logprobs: undefined } });
      expect(generate([1], { 24: 3 }, {}, true)).toMatchObject({ message: expect.stringContaining("logprobs=3 is not supported") });
    });

    const decodeSteps =
      "top_logprobs_num > 0 needs max_new_tokens <= 1: top-k logprobs are computed for the prompt and the token a prefill samples, not for decode steps.";
    test.each([
      [{ 8: 21 }, 1, "top_logprobs_num must be between 1 and 20, got 21."],
      [{ 8: -1 }, 1, "top_logprobs_num must be between 1 and 20, got -1."],
      [{ 8: 1 }, 2, decodeSteps],
      [{ 9: [7] }, 1, "token_ids_logprob is not supported yet"],
      [{ 7: -2 }, 1, "logprob_start_len must be -1 or >= 0, got -2."],
      [{ 7: 3 }, 1, "logprob_start_len (3) must be smaller than the prompt length (3)."],
    ] as const)("%o with a budget of %i: %s", (fields, maxNewTokens, message) => {
      expect(scored(fields, maxNewTokens)).toMatchObject({ kind: "refused", message });
    });

    test("a prompt that is scored has token ids alone; the engine's own outputs are some", () => {
      expect(scored({ 7: 0 }, 1, [1, -1, 3])).toMatchObject({ message: expect.stringContaining("inside the vocabulary") });
      expect(scored({ 7: 0 }, 1, [1, 2_000_000_999, 3])).toMatchObject({ kind: "add" });
      expect(scored({}, 1, [1, -1, 3])).toMatchObject({ kind: "add" });
    });

    test("without a budget alternatives are admitted", () => {
      expect(scored({ 8: 1 }, null)).toMatchObject({ kind: "add" });
    });
  });

  test("a greedy temperature replaces the top-k", () => {
    expect(generate([1], { 3: 0, 5: 500 })).toMatchObject({ kind: "add" });
  });

  test.each([-1, 127, 2 ** 30])("a top-k of %i is admitted, the last one being what the gateway sends for none", (topK) => {
    expect(generate([1], { 5: topK })).toMatchObject({ kind: "add" });
  });

  test("a 64-bit integer that JavaScript has no number for is read all the same", () => {
    expect(generate([1], { 23: 2n ** 63n - 1n })).toMatchObject({ kind: "add", admission: { maxNewTokens: 5 } });
    expect(generate([1], { 0: 2n ** 62n })).toMatchObject({ kind: "add", admission: { maxNewTokens: 97 } });
    expect(generate([1], { 0: -(2n ** 62n) })).toMatchObject({ message: expect.stringContaining("max_new_tokens must be at least 0") });
    expect(() => generate([1], { 23: 2n ** 63n })).toThrow();
  });

  test("a sender that normalized its parameters is taken at its word", () => {
    const normalized = { 26: ["x"], 27: 1, 28: true };
    expect(generate([1], normalized)).toMatchObject({ message: expect.stringContaining("stop strings are not matched") });
    expect(generate([1], { ...normalized, 1: "y", 26: [] })).toMatchObject({ kind: "add" });
    expect(generate([1], { ...normalized, 3: -1, 26: [] })).toMatchObject({ message: "temperature must be non-negative, got -1." });
    expect(generate([1], { ...normalized, 3: 0, 5: 500, 26: [] })).toMatchObject({
      message: expect.stringContaining("top_k must be < 128"),
    });
  });

  test.each([
    ["a bool for the stream that is an integer", [1], {}, { 10: 1 }],
    ["a token id with a fraction", [1.5], {}, {}],
    ["a token id beyond 32 bits", [2 ** 31], {}, {}],
    ["a budget that is text", [1], { 0: "5" }, {}],
    ["a start of logprobs that is nil", [1], {}, { 7: null }],
    ["sampling parameters that are nil", [1], {}, { 5: null }],
    ["a request id that is an integer", [1], {}, { 1: 7 }],
  ])("%s is malformed", (_, inputIds, sampling, fields) => {
    expect(() => generate(inputIds, sampling, fields)).toThrow();
  });

  test("without a single request id they are malformed", () => {
    expect(() => generate([1], {}, { 1: null })).toThrow("single request id");
    expect(() => generate([1], {}, { 1: ["a"] })).toThrow("single request id");
  });
});

describe("vectors of generate requests and aborts", () => {
  const vectors = (file: string): { name: string; reads: string; frames: string[]; value: { rid?: unknown } }[] =>
    JSON.parse(readFileSync(new URL(`../../vectors/${file}.json`, import.meta.url), "utf8"));
  const requests = (file: string) =>
    vectors(file)
      .filter(({ reads, frames }) => reads === "engine-request" && (frames[0] === "00" || frames[0] === "01"))
      .map(({ name, frames, value }) => ({ name, value, frames: frames.map((frame) => Buffer.from(frame, "hex")) }));

  test("are read, tensors in frames of their own included", () => {
    const all = [...requests("generate"), ...requests("abort")];
    expect(all.length).toBeGreaterThan(100);
    for (const { name, frames, value } of all) {
      const single = frames[0]?.[0] === 1 || typeof value.rid === "string";
      if (single) expect(readEngineMessage(frames, limits), name).toMatchObject({ kind: expect.stringMatching(/^(add|refused|abort)$/) });
      else expect(() => readEngineMessage(frames, limits), name).toThrow("a single request id");
    }
  });

  test("that both of the engine's decoders refuse are malformed", () => {
    const all = requests("decode-reject");
    expect(all.length).toBeGreaterThan(20);
    for (const { name, frames } of all) expect(() => readEngineMessage(frames, limits), name).toThrow();
  });
});

describe("framing", () => {
  const payload = encode(["IsSleepingReqInput"]);
  test.each([
    ["no payload", [Uint8Array.of(2)]],
    ["an empty type", [new Uint8Array(), payload]],
    ["a long type", [Uint8Array.of(2, 2), payload]],
    ["an unknown type", [Uint8Array.of(3), payload]],
    ["an ABORT of no list", [Uint8Array.of(1), encode("r")]],
    ["an ABORT of integers", [Uint8Array.of(1), encode([1])]],
  ])("%s is malformed", (_, frames) => {
    expect(() => readEngineMessage(frames, limits)).toThrow();
  });

  test("frames behind the payload are ignored", () => {
    expect(readEngineMessage([Uint8Array.of(2), payload, payload], limits)).toMatchObject({ kind: "control" });
  });
});

test("texts are quoted as Rust's debug form does", () => {
  expect(quoted('a"b\\c\n\t\0\u0001é')).toBe('"a\\"b\\\\c\\n\\t\\0\\u{1}é"');
  expect(quotedList(["a", "b"])).toBe('["a", "b"]');
  expect(quotedList([])).toBe("[]");
});
