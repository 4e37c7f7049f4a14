import { readFileSync } from "node:fs";
import { decode, encode } from "@msgpack/msgpack";
import { describe, expect, test } from "vitest";
import { operations, type SlimMethod } from "../../../generated/tokenspeed/operations.ts";
import { tokenspeed } from "../../../schema/tokenspeed/index.ts";
import { readEngineMessage } from "../../../src/testing/engine-message.ts";
import { announceSlim, encodeSlimReply } from "../../../src/testing/slim-reply.ts";

const frames: { payload_hex: string; payload: [number, string, unknown[]] }[] = JSON.parse(
  readFileSync(new URL("../../vectors/smg-control-frames.json", import.meta.url), "utf8"),
);

function readPayload(payload: Uint8Array) {
  return readEngineMessage([Uint8Array.of(2), payload], { maxModelLen: 100, outputLogprobs: false }, "slim");
}

function read(method: string, ...args: unknown[]) {
  return readPayload(encode([7, method, args]));
}

describe("calls of the second dialect", () => {
  test.each([
    [0, { $tag: "PauseSchedulerReqInput", mode: "wait" }],
    [1, { $tag: "PauseSchedulerReqInput", mode: "wait" }],
    [2, { $tag: "ResumeSchedulerReqInput" }],
    [3, { $tag: "FlushCacheReqInput" }],
    [4, { $tag: "ReleaseMemoryOccupationReqInput", tags: ["weights"] }],
    [5, { $tag: "UpdateWeightsFromDistributedReqInput", dtypeNames: ["float32"], shapes: [[1, 2]], flushCache: true, weightVersion: null }],
    [6, { $tag: "FlushCacheReqInput" }],
    [7, { $tag: "ProfileReq", kind: 1, outputDir: "prof", numSteps: 2, activities: ["CPU"], profileByStage: true, withStack: false }],
    [8, { $tag: "ProfileReq", kind: 2, numSteps: null, profileByStage: false }],
  ])("the gateway's frame %i", (index, request) => {
    const { payload, payload_hex } = frames[index] as (typeof frames)[number];
    const message = readPayload(Uint8Array.from(Buffer.from(payload_hex, "hex")));
    expect(message).toMatchObject({ kind: "control", callId: payload[0], request });
  });

  test("every method of the schema is read, and only those", () => {
    const slims = Object.values(operations).flatMap((operation): SlimMethod[] => ("slim" in operation ? [operation.slim] : []));
    const methods = slims.flatMap(({ method, choice }) => (choice === undefined ? [method] : [method, choice.otherwise]));
    expect(methods).toHaveLength(13);
    const everything = { master_address: "h", master_port: 1, rank_offset: 0, world_size: 2, version: 1, model_path: "/m" };
    const lists = { names: ["w"], dtypes: ["bfloat16"], shapes: [[1]] };
    for (const method of methods)
      expect(read(method, { ...everything, ...lists, unknown: 1 })).toMatchObject({ kind: "control", callId: 7 });
  });

  test("a body that leaves things out has the defaults of the HTTP routes", () => {
    const lists = { names: ["w"], dtypes: ["bfloat16"], shapes: [[1]] };
    expect(read("update_weights_from_distributed", lists)).toMatchObject({
      request: { flushCache: false, weightVersion: null, groupName: "weight_update_group" },
    });
    expect(read("update_weights_from_mooncake", { version: 3 })).toMatchObject({ request: { flushCache: true, weightVersion: null } });
    expect(read("update_weights_from_disk", { model_path: "/m" })).toMatchObject({ request: { flushCache: true, loadFormat: null } });
    expect(read("init_weights_update_group", { master_address: "h", master_port: 1, rank_offset: 0, world_size: 2 })).toMatchObject({
      request: { groupName: "weight_update_group", backend: "nccl" },
    });
    expect(read("release_memory_occupation")).toMatchObject({ request: { tags: null } });
  });

  test("what a method does not take is ignored: unknown keys, a kind, further arguments", () => {
    expect(read("start_profile", { kind: 2, num_steps: 1, "0": 1 }, 5)).toMatchObject({ request: { kind: 1, numSteps: 1 } });
    expect(read("start_profile", { "0": 1 })).toMatchObject({ request: { kind: 1, numSteps: null } });
    expect(read("stop_profile", { kind: 1, num_steps: 1 })).toMatchObject({ request: { kind: 2, numSteps: null } });
    expect(read("continue_generation", "soon")).toMatchObject({ kind: "control" });
    expect(read("pause_generation", { mode: "bogus" })).toMatchObject({ request: { mode: "bogus" } });
  });

  test.each([
    ["unknown control method: is_scheduler_paused", "is_scheduler_paused", []],
    ["unknown control method: constructor", "constructor", []],
    ["Invalid request: request body must be a JSON object", "pause_generation", ["wait"]],
    ["Invalid request: request body must be a JSON object", "pause_generation", [["wait"]]],
    ["Invalid request: request body must be a JSON object", "pause_generation", [null]],
    ["Invalid request: missing_field: UpdateWeightsFromMooncakeReqInput.version", "update_weights_from_mooncake", [{}]],
    ["Invalid request: invalid_value: ReleaseMemoryOccupationReqInput.tags", "release_memory_occupation", [{ tags: "weights" }]],
    ["Invalid request: invalid_value: PauseSchedulerReqInput.mode", "pause_generation", [{ mode: 5 }]],
  ])("%s", (message, method, args) => {
    expect(read(method, ...args)).toEqual({ kind: "refused_call", callId: 7, method, message: expect.stringContaining(message) });
  });

  test.each([
    ["the first dialect", ["PauseSchedulerReqInput", null, null, "wait"]],
    ["no method", [1]],
    ["arguments that are no list", [1, "flush_cache", {}]],
    ["an id that is text", ["1", "flush_cache", []]],
  ])("%s is malformed, for it has no id to answer to", (_, payload) => {
    expect(() => readPayload(encode(payload))).toThrow();
  });

  test("an engine of the first dialect takes none", () => {
    expect(() =>
      readEngineMessage([Uint8Array.of(2), encode([1, "flush_cache", []])], { maxModelLen: 100, outputLogprobs: false }),
    ).toThrow();
  });
});

describe("what an engine of the second dialect says", () => {
  const answered = { callId: 9, engineIndex: 3 };

  test("success and message, nil where there is none", () => {
    expect(decode(encodeSlimReply({ $tag: "FlushCacheReqOutput", success: false }, answered))).toEqual([
      "ControlReplySlim",
      9,
      false,
      null,
      3,
    ]);
    const paused = { $tag: "PauseSchedulerReqOutput", success: true, message: "" } as const;
    expect(decode(encodeSlimReply(paused, answered))).toEqual(["ControlReplySlim", 9, true, null, 3]);
    const failed = { $tag: "UpdateWeightFromDiskReqOutput", success: false, message: "no", numPausedRequests: 0 } as const;
    expect(decode(encodeSlimReply(failed, answered))).toEqual(["ControlReplySlim", 9, false, "no", 3]);
  });

  test.each([1, 15, 16, 40])("a registration of %i keys keeps them and announces the layout of the schema", (keys) => {
    const fields = Object.fromEntries(Array.from({ length: keys }, (_, key) => [`k${key}`, key]));
    const reply = tokenspeed.structs.find(({ name }) => name === "ControlReplySlim");
    expect(decode(announceSlim(encode(fields)))).toEqual({
      ...fields,
      positional_layouts: { ControlReplySlim: reply?.fields.map(({ name }) => name) },
    });
  });
});
