import { describe, expect, test } from "vitest";
import type { ZodType } from "zod";
import * as messages from "../../../src/messages.ts";
import * as schemas from "../../../src/zod.ts";

describe("validators of what a user gives as JSON", () => {
  test("there is one for each struct, and what it accepts is encoded", () => {
    const names = Object.keys(messages).flatMap((name) => /^encode(?!ControlRequest|ControlOutput)(.+)$/.exec(name)?.[1] ?? []);
    expect(names).toHaveLength(49);
    expect(Object.keys(schemas).sort()).toEqual(names.map((name) => `${name}Schema`).sort());
  });

  test("defaults may be left out, and $tag given", () => {
    expect(schemas.PauseSchedulerReqInputSchema.parse({})).toEqual({});
    const init = schemas.PauseSchedulerReqInputSchema.parse({ $tag: "PauseSchedulerReqInput", mode: "wait", rid: ["a"] });
    expect(messages.decodePauseSchedulerReqInput(messages.encodePauseSchedulerReqInput(init))).toMatchObject({ mode: "wait", rid: ["a"] });
  });

  test("nested structs, lists of lists, maps", () => {
    const addresses = { inputs: ["tcp://a"], outputs: [] };
    const handshake = schemas.HandshakeInitMessageSchema.parse({ addresses, parallelConfig: { a: [1] } });
    expect(messages.decodeHandshakeInitMessage(messages.encodeHandshakeInitMessage(handshake)).addresses).toMatchObject(addresses);
    const update = { names: ["a"], dtypeNames: ["x"], shapes: [[1, 2]], weightVersion: null };
    expect(schemas.UpdateWeightsFromDistributedReqInputSchema.parse(update)).toEqual(update);
  });

  test("bytes may be base64, since JSON has none", () => {
    const rest = { loadFormat: null, flushCache: true };
    const init = schemas.UpdateWeightsFromTensorReqInputSchema.parse({ serializedNamedTensors: ["AQID", Uint8Array.of(4)], ...rest });
    expect(init.serializedNamedTensors).toEqual([Uint8Array.of(1, 2, 3), Uint8Array.of(4)]);
    expect(schemas.UpdateWeightsFromTensorReqInputSchema.safeParse({ serializedNamedTensors: ["?"], ...rest }).success).toBe(false);
  });

  test("requests with tensors, whose bytes and 64-bit integers may be text", () => {
    const feature = { dtype: "uint8", shape: [3], data: "AQID" };
    const item = { modality: 1, hash: "18446744073709551615", feature, modelSpecificData: { grid: feature }, offsets: [[0, 4]] };
    const init = schemas.TokenizedGenerateReqInputSchema.parse({
      rid: "r",
      samplingParams: { stopTokenIds: [1], logitBias: { a: 0.5 } },
      multimodalInputs: { mmItems: [item] },
    });
    const decoded = messages.decodeTokenizedGenerateReqInput(messages.encodeTokenizedGenerateReqInput(init));
    const tensor = { dtype: "uint8", shape: [3], data: Uint8Array.of(1, 2, 3) };
    expect(decoded.multimodalInputs?.mmItems).toMatchObject([
      { hash: 2n ** 64n - 1n, feature: tensor, modelSpecificData: { grid: tensor }, offsets: [[0, 4]] },
    ]);
    expect(decoded.samplingParams).toMatchObject({ stopTokenIds: [1], logitBias: { a: 0.5 }, temperature: 1 });
  });

  test("values that are no structs", () => {
    expect(messages.decodeAbortRids(messages.encodeAbortRids(schemas.AbortRidsSchema.parse(["a"])))).toEqual(["a"]);
  });

  test.each<readonly [what: string, schema: ZodType, input: unknown]>([
    ["a list of ids with a number", schemas.AbortRidsSchema, ["a", 1]],
    ["a token id beyond 32 bits", schemas.TokenizedGenerateReqInputSchema, { samplingParams: {}, inputIds: [2 ** 31] }],
    ["a modality that there is not", schemas.MultimodalDataItemSchema, { modality: 4 }],
    ["a tensor of a negative size", schemas.MultimodalDataItemSchema, { modality: 1, feature: { dtype: "x", shape: [-1], data: "" } }],
    ["a tensor without bytes", schemas.MultimodalDataItemSchema, { modality: 1, feature: { dtype: "x", shape: [] } }],
    ["a number for a tensor's name", schemas.MultimodalDataItemSchema, { modality: 1, modelSpecificData: { a: 1 } }],
    ["a misspelt property", schemas.PauseSchedulerReqInputSchema, { mdoe: "wait" }],
    ["a wire name", schemas.PauseSchedulerReqInputSchema, { http_worker_ipc: null }],
    ["a value outside a literal", schemas.PauseSchedulerReqInputSchema, { mode: "pause" }],
    ["another tag", schemas.PauseSchedulerReqInputSchema, { $tag: "FlushCacheReqInput" }],
    ["null without nil", schemas.PauseSchedulerReqInputSchema, { mode: null }],
    ["a missing required field", schemas.ProfileReqSchema, {}],
    ["a fraction for an integer", schemas.ProfileReqSchema, { kind: 1, startStep: 1.5 }],
    ["an unsafe integer", schemas.ProfileReqSchema, { kind: 1, startStep: 2 ** 53 }],
    ["a string for a boolean", schemas.ProfileReqSchema, { kind: 1, profileByStage: "true" }],
    ["a list for a map", schemas.SetInternalStateReqSchema, { serverArgs: [] }],
    ["no object", schemas.IsSleepingReqInputSchema, null],
  ])("%s is refused", (_, schema, input) => {
    expect(schema.safeParse(input).success).toBe(false);
  });
});
