import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Operation, operations } from "../../../generated/tokenspeed/operations.ts";
import {
  type ControlRequestInit,
  decodeControlCallSlim,
  encodeControlReplySlim,
  encodeControlRequest,
  encodeEngineCoreReadyResponse,
  PROFILE_START,
  PROFILE_STOP,
} from "../../../src/messages.ts";
import { announcesSlim, SlimDialect } from "../../../src/node/slim-dialect.ts";
import { encodeAny, float } from "../../../src/wire/index.ts";

const frames: { payload_hex: string; payload: [number, string, unknown[]] }[] = JSON.parse(
  readFileSync(new URL("../../vectors/smg-control-frames.json", import.meta.url), "utf8"),
);
const bytesOf = (hex: string) => Uint8Array.from(Buffer.from(hex, "hex"));
const operationOf = (tag: string) => Object.values<Operation>(operations).find(({ request }) => request === tag) as Operation;

function encode(dialect: SlimDialect, request: ControlRequestInit): Uint8Array {
  return dialect.encode(operationOf(request.$tag), encodeControlRequest(request));
}

describe("a call in the gateway's dialect", () => {
  it.each(frames.map(({ payload, payload_hex }) => [payload[1], payload_hex, payload] as const))(
    "is read: %s %s",
    (_, hex, [callId, method, args]) => {
      expect(decodeControlCallSlim(bytesOf(hex))).toEqual({ callId, method, args });
    },
  );

  // the gateway passes on what its own caller said; these are the frames that say what an operation's request says
  it.each([
    [0, { $tag: "PauseSchedulerReqInput", mode: "wait" }],
    [2, { $tag: "ResumeSchedulerReqInput" }],
    [3, { $tag: "FlushCacheReqInput" }],
    [4, { $tag: "ReleaseMemoryOccupationReqInput", tags: ["weights"] }],
    [8, { $tag: "ProfileReq", kind: PROFILE_STOP }],
  ] as [number, ControlRequestInit][])("is written as frame %i", (index, request) => {
    const { payload, payload_hex } = frames[index] as (typeof frames)[number];
    const dialect = new SlimDialect();
    for (let id = 1; id < payload[0]; id++) encode(dialect, { $tag: "FlushCacheReqInput" });
    expect(Buffer.from(encode(dialect, request)).toString("hex")).toBe(payload_hex);
  });

  it("names every field that is set, by the gateway's names", () => {
    const dialect = new SlimDialect();
    const update = { names: ["a"], dtypeNames: ["float32"], shapes: [[1, 2]], weightVersion: "v" };
    expect(decodeControlCallSlim(encode(dialect, { $tag: "UpdateWeightsFromDistributedReqInput", ...update }))).toEqual({
      callId: 1,
      method: "update_weights_from_distributed",
      args: [
        { names: ["a"], dtypes: ["float32"], shapes: [[1, 2]], group_name: "weight_update_group", flush_cache: true, weight_version: "v" },
      ],
    });
    expect(decodeControlCallSlim(encode(dialect, { $tag: "ProfileReq", kind: PROFILE_START, numSteps: 2 }))).toEqual({
      callId: 2,
      method: "start_profile",
      args: [{ num_steps: 2, profile_by_stage: false }],
    });
  });
});

describe("a reply in the gateway's dialect", () => {
  const reply = (callId: number, success: boolean, message: string | null) => encodeControlReplySlim({ callId, success, message });

  it("becomes the operation's own reply", () => {
    const dialect = new SlimDialect();
    encode(dialect, { $tag: "PauseSchedulerReqInput" });
    encode(dialect, { $tag: "FlushCacheReqInput" });
    encode(dialect, { $tag: "UpdateWeightFromDiskReqInput", modelPath: "/m" });
    expect(dialect.decode(reply(2, false, "pages are pinned"))).toMatchObject({ $tag: "FlushCacheReqOutput", success: false });
    expect(dialect.decode(reply(3, true, null))).toMatchObject({
      $tag: "UpdateWeightFromDiskReqOutput",
      success: true,
      message: "",
      numPausedRequests: 0,
    });
    expect(dialect.decode(reply(1, false, "busy"))).toMatchObject({ $tag: "PauseSchedulerReqOutput", success: false, message: "busy" });
  });

  it("of an earlier call is told from that of a later one of its kind", () => {
    const dialect = new SlimDialect();
    encode(dialect, { $tag: "FlushCacheReqInput" });
    encode(dialect, { $tag: "FlushCacheReqInput" });
    expect(dialect.decode(reply(1, true, null))).toBeUndefined();
    expect(dialect.decode(reply(2, true, null))).toMatchObject({ $tag: "FlushCacheReqOutput" });
    expect(dialect.decode(reply(2, true, null))).toBeUndefined();
  });
});

describe("a registration", () => {
  it("announces the dialect by its positional layouts", () => {
    const layouts = { ControlReplySlim: ["call_id", "success", "message", "engine_index"] };
    expect(announcesSlim(encodeAny({ max_model_len: 1, positional_layouts: layouts }))).toBe(true);
    expect(announcesSlim(encodeAny({ positional_layouts: { Other: [] } }))).toBe(false);
    expect(announcesSlim(encodeAny({ positional_layouts: null }))).toBe(false);
    expect(announcesSlim(encodeEngineCoreReadyResponse({}))).toBe(false);
    expect(announcesSlim(encodeAny([float(1)]))).toBe(false);
    expect(announcesSlim(Uint8Array.of(0xc1))).toBe(false);
  });
});
