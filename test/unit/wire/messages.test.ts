import { describe, expect, test } from "vitest";
import * as messages from "../../../src/messages.ts";
import {
  type ControlRequestInit,
  decodeControlOutput,
  decodeControlRequest,
  decodeEngineCoreReadyResponse,
  decodeFlushCacheReqOutput,
  decodeHandshakeInitMessage,
  decodePauseSchedulerReqInput,
  decodeReadyMessage,
  decodeUpdateWeightsFromDistributedReqInput,
  encodeControlOutput,
  encodeControlRequest,
  encodeEngineCoreReadyResponse,
  encodeGetInternalStateReqOutput,
  encodeHandshakeInitMessage,
  encodeIsSleepingReqInput,
  encodePauseSchedulerReqInput,
  encodeProfileReq,
  encodeReadyMessage,
  encodeSetInternalStateReq,
  encodeUpdateWeightsFromDistributedReqInput,
  encodeUpdateWeightsFromTensorReqInput,
  PROFILE_START,
  peekTag,
  replyTagOf,
  replyTags,
  requestTags,
} from "../../../src/messages.ts";
import { decodeAny, EngineWireError, encodeAny } from "../../../src/wire/index.ts";

const update = { names: ["a", "b"], dtypeNames: ["x", "y"], shapes: [[1], [2, 3]], weightVersion: null };

function errorOf(run: () => unknown): EngineWireError {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(EngineWireError);
    return error as EngineWireError;
  }
  throw new Error("nothing was thrown");
}

describe("defaults", () => {
  test("undefined means the default, as leaving the property out does", () => {
    const absent = encodePauseSchedulerReqInput({});
    expect(encodePauseSchedulerReqInput({ rid: undefined, httpWorkerIpc: undefined, mode: undefined })).toEqual(absent);
    expect(decodePauseSchedulerReqInput(absent)).toEqual({ $tag: "PauseSchedulerReqInput", rid: null, httpWorkerIpc: null, mode: "abort" });
  });

  test("all positions are written", () => {
    expect(decodeAny(encodeUpdateWeightsFromDistributedReqInput(update))).toEqual([
      "UpdateWeightsFromDistributedReqInput",
      null,
      null,
      ["a", "b"],
      ["x", "y"],
      [[1], [2, 3]],
      "weight_update_group",
      true,
      null,
    ]);
  });
});

describe("what a struct does not have is refused", () => {
  test.each<readonly [init: object, path: string, hint: string]>([
    [{ mdoe: "wait" }, "PauseSchedulerReqInput.mdoe", 'did you mean "mode"?'],
    [{ Mode: "wait" }, "PauseSchedulerReqInput.Mode", 'did you mean "mode"?'],
    [{ http_worker_ipc: "x" }, "PauseSchedulerReqInput.http_worker_ipc", 'did you mean "httpWorkerIpc"?'],
    [{ mode: "wait", force: true }, "PauseSchedulerReqInput.force", "it has rid, httpWorkerIpc, mode"],
    [{ tag: "PauseSchedulerReqInput" }, "PauseSchedulerReqInput.tag", 'did you mean "$tag"?'],
  ])("%j", (init, path, hint) => {
    const error = errorOf(() => encodePauseSchedulerReqInput(init));
    expect([error.code, error.path]).toEqual(["unknown_field", path]);
    expect(error.message).toContain(hint);
  });

  test("also when its value is undefined, and when it is inherited", () => {
    expect(errorOf(() => encodePauseSchedulerReqInput({ mdoe: undefined } as object)).code).toBe("unknown_field");
    expect(errorOf(() => encodePauseSchedulerReqInput(Object.create({ mdoe: "wait" }) as object)).code).toBe("unknown_field");
  });

  test("a property name of any length is cut in the error", () => {
    const error = errorOf(() => encodePauseSchedulerReqInput({ ["x".repeat(1e6)]: 1 }));
    expect(error.message.length).toBeLessThan(300);
  });

  test.each([[new Map([["mode", "wait"]])], [new Date()], [[]], [["wait"]], ["wait"], [null], [undefined], [1], [new (class Pause {})()]])(
    "%s is no message at its defaults",
    (init) => {
      expect(errorOf(() => encodePauseSchedulerReqInput(init as object)).code).toBe("invalid_value");
    },
  );

  test("an instance of a class with the right properties is one", () => {
    class Pause {
      readonly mode = "wait";
    }
    expect(decodePauseSchedulerReqInput(encodePauseSchedulerReqInput(new Pause())).mode).toBe("wait");
  });
});

describe("every field is checked before a byte leaves", () => {
  const wrong: readonly (readonly [run: () => unknown, code: string, path: string])[] = [
    [() => encodePauseSchedulerReqInput({ mode: "pause" as never }), "invalid_value", "PauseSchedulerReqInput.mode"],
    [() => encodePauseSchedulerReqInput({ mode: null as never }), "invalid_value", "PauseSchedulerReqInput.mode"],
    [() => encodePauseSchedulerReqInput({ rid: 1 as never }), "invalid_value", "PauseSchedulerReqInput.rid"],
    [() => encodePauseSchedulerReqInput({ rid: ["a", 1] as never }), "invalid_value", "PauseSchedulerReqInput.rid[1]"],
    [() => encodePauseSchedulerReqInput({ rid: "\ud800" }), "invalid_value", "PauseSchedulerReqInput.rid"],
    [() => encodePauseSchedulerReqInput({ $tag: "FlushCacheReqInput" as never }), "invalid_value", "PauseSchedulerReqInput.$tag"],
    [() => encodeProfileReq({ kind: 3 as never }), "invalid_value", "ProfileReq.kind"],
    [() => encodeProfileReq({ kind: "1" as never }), "invalid_value", "ProfileReq.kind"],
    [() => encodeProfileReq({ kind: PROFILE_START, startStep: 1.5 }), "invalid_value", "ProfileReq.start_step"],
    [() => encodeProfileReq({ kind: PROFILE_START, startStep: 2 ** 53 }), "unsafe_integer", "ProfileReq.start_step"],
    [() => encodeProfileReq({ kind: PROFILE_START, startStep: 2n ** 53n }), "unsafe_integer", "ProfileReq.start_step"],
    [() => encodeProfileReq({ kind: PROFILE_START, startStep: Number.NaN }), "invalid_value", "ProfileReq.start_step"],
    [() => encodeProfileReq({ kind: PROFILE_START, startStep: true as never }), "invalid_value", "ProfileReq.start_step"],
    [() => encodeProfileReq({ kind: PROFILE_START, profileByStage: 1 as never }), "invalid_value", "ProfileReq.profile_by_stage"],
    [() => encodeProfileReq({} as never), "missing_field", "ProfileReq.kind"],
    [
      () => encodeUpdateWeightsFromDistributedReqInput({ ...update, weightVersion: undefined as never }),
      "missing_field",
      "UpdateWeightsFromDistributedReqInput.weight_version",
    ],
    [
      () => encodeUpdateWeightsFromDistributedReqInput({ ...update, names: "a" as never }),
      "invalid_value",
      "UpdateWeightsFromDistributedReqInput.names",
    ],
    [
      () => encodeUpdateWeightsFromDistributedReqInput({ ...update, names: ["a", null] as never }),
      "invalid_value",
      "UpdateWeightsFromDistributedReqInput.names[1]",
    ],
    [
      () =>
        encodeUpdateWeightsFromDistributedReqInput({
          ...update,
          names: [...Array.from({ length: 99 }, (_, i) => `a long name ${i}`), 1] as never,
        }),
      "invalid_value",
      "UpdateWeightsFromDistributedReqInput.names[99]",
    ],
    [
      () =>
        encodeUpdateWeightsFromDistributedReqInput({
          ...update,
          names: [...Array.from({ length: 99 }, (_, i) => `a long name ${i}`), "\udfff"],
        }),
      "invalid_value",
      "UpdateWeightsFromDistributedReqInput.names[99]",
    ],
    [
      () => encodeUpdateWeightsFromDistributedReqInput({ ...update, shapes: [[1], [2], [3], [-1, 1.5]] }),
      "invalid_value",
      "UpdateWeightsFromDistributedReqInput.shapes[3][1]",
    ],
    [
      () => encodeUpdateWeightsFromDistributedReqInput({ ...update, shapes: [[1], [2n ** 53n]] as never }),
      "unsafe_integer",
      "UpdateWeightsFromDistributedReqInput.shapes[1][0]",
    ],
    [
      () => encodeUpdateWeightsFromDistributedReqInput({ ...update, shapes: [[1], 2] as never }),
      "invalid_value",
      "UpdateWeightsFromDistributedReqInput.shapes[1]",
    ],
    [
      () => encodeUpdateWeightsFromTensorReqInput({ serializedNamedTensors: ["x"] as never, loadFormat: null, flushCache: true }),
      "invalid_value",
      "UpdateWeightsFromTensorReqInput.serialized_named_tensors[0]",
    ],
    [
      () => encodeHandshakeInitMessage({ addresses: { inputs: [1] as never } }),
      "invalid_value",
      "HandshakeInitMessage.addresses.inputs[0]",
    ],
    [() => encodeHandshakeInitMessage({ addresses: { in: [] } as never }), "unknown_field", "HandshakeInitMessage.addresses.in"],
    [
      () => encodeEngineCoreReadyResponse({ kvCacheMaxConcurrency: 1n as never }),
      "invalid_value",
      "EngineCoreReadyResponse.kv_cache_max_concurrency",
    ],
    [
      () => encodeSetInternalStateReq({ serverArgs: { a: [{ b: new Date() }] } }),
      "invalid_value",
      "SetInternalStateReq.server_args.a[0].b",
    ],
    // Python's field is dict[str, Any]: such a map would end its receive loop.
    [
      () => encodeSetInternalStateReq({ serverArgs: new Map([[1, 1]]) as never }),
      "invalid_value",
      "SetInternalStateReq.server_args[key 1]",
    ],
    [() => encodeSetInternalStateReq({ serverArgs: [] as never }), "invalid_value", "SetInternalStateReq.server_args"],
    [() => encodeControlRequest({ $tag: "Nothing" as never }), "unknown_tag", "ControlRequest.$tag"],
    [() => encodeControlRequest({} as never), "unknown_tag", "ControlRequest.$tag"],
    [() => encodeControlRequest(null as never), "invalid_value", "ControlRequest"],
    [() => encodeControlRequest({ $tag: "PauseSchedulerReqInput", mode: "x" as never }), "invalid_value", "PauseSchedulerReqInput.mode"],
    [() => encodeControlOutput({ $tag: "PauseSchedulerReqInput" as never } as never), "unknown_tag", "ControlOutput.$tag"],
  ];

  test.each(wrong.map(([run, code, path], i) => ({ i, run, code, path })))("$i: $code at $path", ({ run, code, path }) => {
    const error = errorOf(run);
    expect([error.code, error.path]).toEqual([code, path]);
    expect(error.message).toMatch(new RegExp(`^${code}: `));
    expect(error.message).toContain(`${path}: expected `);
    expect(error.offset).toBeUndefined();
    expect(() => JSON.stringify(error)).not.toThrow();
  });

  test("a safe bigint is an integer field's value", () => {
    expect(encodeProfileReq({ kind: 1, startStep: 5n })).toEqual(encodeProfileReq({ kind: 1, startStep: 5 }));
    expect(encodeUpdateWeightsFromDistributedReqInput({ ...update, shapes: [[5n], [2n ** 40n]] })).toEqual(
      encodeUpdateWeightsFromDistributedReqInput({ ...update, shapes: [[5], [2 ** 40]] }),
    );
  });

  test("a float field holding a whole number stays a float", () => {
    expect(Buffer.from(encodeEngineCoreReadyResponse({ kvCacheMaxConcurrency: 2 })).toString("hex")).toContain("cb4000000000000000");
  });
});

describe("decoding says where and what", () => {
  const bytes = encodeUpdateWeightsFromDistributedReqInput(update);

  test("the path has wire names, the offset is that of the value", () => {
    const wrong = encodeAny(["UpdateWeightsFromDistributedReqInput", null, null, ["a"], ["b"], [[1, "x"]], "g", true, null]);
    expect(errorOf(() => decodeUpdateWeightsFromDistributedReqInput(wrong))).toMatchObject({
      code: "malformed",
      path: "UpdateWeightsFromDistributedReqInput.shapes[0][1]",
      offset: 50,
      expected: "int",
      found: "str",
      message: "malformed: UpdateWeightsFromDistributedReqInput.shapes[0][1]: expected int, found str at byte 50",
    });
  });

  test.each([
    [
      "a required field that is missing",
      ["UpdateWeightsFromDistributedReqInput", null, null, []],
      "missing_field",
      "UpdateWeightsFromDistributedReqInput.dtype_names",
    ],
    [
      "an unsafe integer",
      ["UpdateWeightsFromDistributedReqInput", null, null, [], [], [[1], [2n ** 60n]], "g", true, null],
      "unsafe_integer",
      "UpdateWeightsFromDistributedReqInput.shapes[1][0]",
    ],
    ["another tag", ["FlushCacheReqInput", null, null], "unknown_tag", "UpdateWeightsFromDistributedReqInput"],
    ["no tag", [], "malformed", "UpdateWeightsFromDistributedReqInput"],
    ["a map", {}, "malformed", "UpdateWeightsFromDistributedReqInput"],
  ])("%s", (_, value, code, path) => {
    expect(errorOf(() => decodeUpdateWeightsFromDistributedReqInput(encodeAny(value)))).toMatchObject({ code, path });
  });

  test.each([
    ["", "FlushCacheReqOutput", 0, "the end of the message"],
    ["94b3466c75736843616368655265714f7574707574c0c0", "FlushCacheReqOutput.success", 23, "the end of the message"],
    ["94b3466c75736843616368655265714f7574707574c0c1", "FlushCacheReqOutput.http_worker_ipc", 22, "the reserved byte c1"],
    ["94b3466c75736843616368655265714f7574707574c0c0d5", "FlushCacheReqOutput.success", 23, "ext"],
  ])("%s: found at %s", (hex, path, offset, found) => {
    expect(errorOf(() => decodeFlushCacheReqOutput(Buffer.from(hex, "hex")))).toMatchObject({ code: "malformed", path, offset, found });
  });

  test("trailing bytes", () => {
    expect(errorOf(() => decodeUpdateWeightsFromDistributedReqInput(Buffer.concat([bytes, bytes])))).toMatchObject({
      code: "malformed",
      offset: bytes.length,
    });
  });

  test.each([[null], ["text"], [[0x90]], [new ArrayBuffer(3)], [new Float64Array(2)]])("input that is not bytes: %s", (input) => {
    expect(errorOf(() => decodeControlOutput(input as never)).code).toBe("invalid_argument");
  });

  test("a subclass of Uint8Array, also at an offset", () => {
    const padded = Buffer.concat([Buffer.alloc(7, 0xc1), bytes, Buffer.alloc(3, 0xc1)]);
    expect(decodeUpdateWeightsFromDistributedReqInput(padded.subarray(7, 7 + bytes.length))).toMatchObject(update);
  });
});

describe("versions of a struct", () => {
  test("missing trailing elements take their defaults, extra ones of any type are skipped", () => {
    expect(decodePauseSchedulerReqInput(encodeAny(["PauseSchedulerReqInput"])).mode).toBe("abort");
    const more = encodeAny(["FlushCacheReqOutput", null, null, true, [1, { a: [] }], "text", new Uint8Array(3), 1.5, null]);
    expect(decodeFlushCacheReqOutput(more)).toEqual({ $tag: "FlushCacheReqOutput", rid: null, httpWorkerIpc: null, success: true });
  });

  test("unknown keys are skipped, the last of duplicates wins, an older key is known", () => {
    const bytes = encodeAny(
      new Map<unknown, unknown>([
        ["new", { a: [1] }],
        ["status", "HELLO"],
      ]),
    );
    expect(decodeReadyMessage(bytes).status).toBe("HELLO");
    const twice = Uint8Array.from([0x82, ...encodeAny("status"), ...encodeAny("HELLO"), ...encodeAny("status"), ...encodeAny("READY")]);
    expect(decodeReadyMessage(twice).status).toBe("READY");
    expect(decodeEngineCoreReadyResponse(encodeAny({ block_size: 64 })).prefixGranularity).toBe(64);
    expect(decodeEngineCoreReadyResponse(encodeAny({ prefix_granularity: 32 })).prefixGranularity).toBe(32);
  });

  test("keys of prototypes are unknown keys", () => {
    const bytes = encodeAny(
      new Map<unknown, unknown>([
        ["__proto__", { status: "x" }],
        ["constructor", 1],
        ["status", "HELLO"],
      ]),
    );
    const decoded = decodeReadyMessage(bytes);
    expect(Object.getPrototypeOf(decoded)).toBe(Object.prototype);
    expect(decoded).toEqual({ status: "HELLO", local: null, headless: null, parallel_config_hash: undefined, parallelConfigHash: null });
  });

  test("a map key that is not text is refused", () => {
    expect(errorOf(() => decodeReadyMessage(encodeAny(new Map([[1, "x"]])))).code).toBe("malformed");
  });

  test("each decoded struct has lists and maps of its own", () => {
    const bytes = encodeAny({ addresses: {} });
    const [one, other] = [decodeHandshakeInitMessage(bytes), decodeHandshakeInitMessage(bytes)];
    one.addresses.inputs.push("mine");
    expect(other.addresses.inputs).toEqual([]);
    expect(one.parallelConfig).not.toBe(other.parallelConfig);
  });

  test("a decoded struct encodes to the same bytes", () => {
    for (const bytes of [encodeReadyMessage({}), encodeHandshakeInitMessage({ addresses: {} })])
      expect(decodeAny(bytes)).toBeTypeOf("object");
    const bytes = encodePauseSchedulerReqInput({ mode: "keep", rid: ["a", "b"] });
    expect(encodePauseSchedulerReqInput(decodePauseSchedulerReqInput(bytes))).toEqual(bytes);
    expect(encodeControlRequest(decodeControlRequest(bytes))).toEqual(bytes);
  });
});

describe("tags", () => {
  test("peekTag never throws", () => {
    expect(peekTag(encodeIsSleepingReqInput({}))).toBe("IsSleepingReqInput");
    expect(peekTag(encodeGetInternalStateReqOutput({ internalState: {} }))).toBe("GetInternalStateReqOutput");
    for (const value of [null, 1, "text", [], [1], {}, [null], [new Uint8Array(2)]]) expect(peekTag(encodeAny(value))).toBeUndefined();
    for (const bytes of [[], [0x91], [0x91, 0xa3, 0x61], [0x91, 0xa1, 0xff], [0xdd, 0xff, 0xff, 0xff, 0xff, 0xa1, 0x61], [0xc1]]) {
      expect(peekTag(Uint8Array.from(bytes))).toBeUndefined();
    }
    expect(peekTag("x" as never)).toBeUndefined();
    expect(peekTag(undefined as never)).toBeUndefined();
  });

  test("a tag with any byte changed is not the tag", () => {
    const tags = [...Object.keys(replyTags), ...Object.keys(requestTags)];
    expect(tags).toHaveLength(34);
    for (const tag of tags) {
      const decode = (messages as unknown as { [name: string]: (bytes: Uint8Array) => unknown })[`decode${tag}`];
      const bytes = encodeAny([tag, null, null, ...Array.from({ length: 9 }, () => null)]);
      for (let i = bytes.length - 11 - tag.length; i < bytes.length - 11; i++) {
        const changed = Uint8Array.from(bytes);
        changed[i] = (changed[i] as number) ^ 0x01;
        expect(errorOf(() => decode?.(changed)).code).toBe("unknown_tag");
      }
    }
  });

  test("requests and replies name each other", () => {
    expect(Object.keys(replyTags)).toHaveLength(17);
    for (const [request, reply] of Object.entries(replyTags)) expect(requestTags[reply]).toBe(request);
    expect(replyTagOf({ $tag: "ProfileReq" })).toBe("ProfileReqOutput");
  });

  test("a union encodes what each struct's own encoder does", () => {
    const init: ControlRequestInit = { $tag: "PauseSchedulerReqInput", mode: "wait" };
    expect(encodeControlRequest(init)).toEqual(encodePauseSchedulerReqInput({ mode: "wait" }));
  });

  test("a reply is no request", () => {
    expect(errorOf(() => decodeControlRequest(encodeGetInternalStateReqOutput({ internalState: {} })))).toMatchObject({
      code: "unknown_tag",
      path: "ControlRequest",
      offset: 1,
    });
  });
});
