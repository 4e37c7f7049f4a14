import { describe, expect, test } from "vitest";
import {
  decodeEncodeRequest,
  decodeMultimodalDataItem,
  decodeMultimodalInputs,
  decodeTokenizedGenerateReqInput,
  encodeEncodeRequest,
  encodeMultimodalDataItem,
  encodeMultimodalInputs,
  encodeTokenizedGenerateReqInput,
  MODALITY_AUDIO,
  MODALITY_IMAGE,
  type MultimodalDataItemInit,
} from "../../../src/messages.ts";
import {
  decodeAny,
  decodeWith,
  EngineWireError,
  Ext,
  encodeAny,
  encodeWith,
  readTensor,
  type Tensor,
  writeTensor,
} from "../../../src/wire/index.ts";

function errorOf(run: () => unknown): EngineWireError {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(EngineWireError);
    return error as EngineWireError;
  }
  throw new Error("nothing was thrown");
}

/** A tensor of so many bytes. */
function bytesTensor(length: number): Tensor {
  return { dtype: "uint8", shape: [length], data: Uint8Array.from({ length }, (_, i) => i * 7) };
}

function image(feature: Tensor): MultimodalDataItemInit {
  return { modality: MODALITY_IMAGE, feature };
}

describe("where a tensor's bytes travel", () => {
  test.each([
    [0, "c70003"],
    [1, "d403"],
    [2, "d503"],
    [4, "d603"],
    [8, "d703"],
    [16, "d803"],
    [17, "c71103"],
    [255, "c7ff03"],
  ])("%i bytes are inline", (length, header) => {
    const frames = encodeMultimodalDataItem(image(bytesTensor(length)));
    expect(frames).toHaveLength(1);
    const [, , , , feature] = decodeAny(frames[0]) as unknown[];
    expect(feature).toEqual(["uint8", [length], new Ext(3, bytesTensor(length).data)]);
    expect(Buffer.from(frames[0]).toString("hex")).toContain(header);
    expect(decodeMultimodalDataItem(frames).feature).toEqual(bytesTensor(length));
  });

  test.each([256, 257, 3_000])("%i bytes are a frame", (length) => {
    const frames = encodeMultimodalDataItem(image(bytesTensor(length)));
    expect(frames).toHaveLength(2);
    expect((decodeAny(frames[0]) as unknown[])[4]).toEqual(["uint8", [length], 1]);
    expect(frames[1]).toEqual(bytesTensor(length).data);
    expect(decodeMultimodalDataItem(frames).feature).toEqual(bytesTensor(length));
  });

  test("frames are numbered in the order of the message, whatever holds them", () => {
    const tensors = [300, 10, 400, 500, 600].map(bytesTensor) as [Tensor, Tensor, Tensor, Tensor, Tensor];
    const [first, small, second, third, fourth] = tensors;
    const multimodalInputs = {
      mmItems: [image(first), { ...image(small), modelSpecificData: { grid: second, more: third } }],
      mropePositions: fourth,
    };
    const frames = encodeTokenizedGenerateReqInput({ rid: "r", samplingParams: {}, multimodalInputs });
    expect(frames.slice(1)).toEqual([first, second, third, fourth].map(({ data }) => data));
    const { multimodalInputs: decoded } = decodeTokenizedGenerateReqInput(frames);
    expect(decoded?.mmItems.map(({ feature }) => feature)).toEqual([first, small]);
    expect(decoded?.mmItems[1]?.modelSpecificData).toEqual({ grid: second, more: third });
    expect(decoded?.mropePositions).toEqual(fourth);
    expect(encodeTokenizedGenerateReqInput({ rid: "r", samplingParams: {}, multimodalInputs: decoded })).toEqual(frames);
  });

  test("a message without tensors is one frame", () => {
    expect(encodeTokenizedGenerateReqInput({ rid: "r", inputIds: [1], samplingParams: {} })).toHaveLength(1);
    expect(encodeMultimodalInputs({ mmItems: [] })).toHaveLength(1);
  });

  test("frames of a message that failed are not those of the next one", () => {
    const items = [image(bytesTensor(300)), { modality: 9 as never }];
    expect(errorOf(() => encodeMultimodalInputs({ mmItems: items })).path).toBe("MultimodalInputs.mm_items[1].modality");
    expect(encodeMultimodalInputs({ mmItems: [image(bytesTensor(301))] })).toHaveLength(2);
    expect(encodeMultimodalInputs({ mmItems: [] })).toHaveLength(1);
  });

  test("an encoder called by a getter has frames of its own", () => {
    let inner: readonly Uint8Array[] = [];
    const item = {
      modality: MODALITY_AUDIO,
      get feature(): Tensor {
        inner = encodeMultimodalDataItem(image(bytesTensor(1000)));
        return bytesTensor(2000);
      },
    } as const;
    const outer = encodeMultimodalInputs({ mmItems: [item], mropePositions: bytesTensor(300) });
    expect(outer.map(({ length }) => length).slice(1)).toEqual([2000, 300]);
    expect(inner.map(({ length }) => length).slice(1)).toEqual([1000]);
  });
});

test("without anybody to take frames all bytes are inline, also behind a message that had frames", () => {
  encodeMultimodalDataItem(image(bytesTensor(300)));
  const bytes = encodeWith(writeTensor, bytesTensor(300), "T");
  expect(decodeAny(bytes)).toEqual(["uint8", [300], new Ext(3, bytesTensor(300).data)]);
  expect(decodeWith(readTensor, bytes, "T")).toEqual(bytesTensor(300));
});

describe("who owns the bytes", () => {
  test("what is encoded stays as it is when the caller's tensor changes", () => {
    for (const length of [100, 300]) {
      const tensor = bytesTensor(length);
      const frames = encodeMultimodalDataItem(image(tensor));
      tensor.data.fill(0xff);
      expect(decodeMultimodalDataItem(frames).feature).toEqual(bytesTensor(length));
    }
  });

  test("a decoded tensor is a plain view of its frame, wherever that stands in a buffer", () => {
    const [payload, frame] = encodeMultimodalDataItem(image(bytesTensor(300)));
    const padded = Buffer.concat([Buffer.alloc(5, 0xc1), frame as Uint8Array, Buffer.alloc(5, 0xc1)]).subarray(5, 305);
    const { feature } = decodeMultimodalDataItem([payload, padded]);
    expect(Object.getPrototypeOf(feature?.data)).toBe(Uint8Array.prototype);
    expect(feature).toEqual(bytesTensor(300));
    expect(feature?.data.buffer).toBe(padded.buffer);
  });

  test("tensors may share a frame, and frames that nobody names are ignored", () => {
    const tensor = ["uint8", [2], 2];
    const payload = encodeAny([1, null, null, null, tensor, null, { again: tensor }]);
    const frames = [payload, Uint8Array.of(9), Uint8Array.of(1, 2), Uint8Array.of(7)];
    const { feature, modelSpecificData } = decodeMultimodalDataItem(frames);
    expect(feature).toEqual({ dtype: "uint8", shape: [2], data: Uint8Array.of(1, 2) });
    expect(modelSpecificData).toEqual({ again: feature });
  });
});

describe("what is refused", () => {
  const data = new Ext(3, Uint8Array.of(1, 2));
  const aux = Uint8Array.of(1, 2);
  test.each<readonly [what: string, tensor: unknown, code: string, path: string]>([
    ["an extension of another type", ["uint8", [2], new Ext(1, Uint8Array.of(1, 2))], "malformed", "feature.data"],
    ["bytes that are no extension", ["uint8", [2], Uint8Array.of(1, 2)], "malformed", "feature.data"],
    ["the payload as a frame", ["uint8", [2], 0], "malformed", "feature.data"],
    ["a frame counted from the end", ["uint8", [2], -1], "malformed", "feature.data"],
    ["a frame behind the last", ["uint8", [2], 2], "malformed", "feature.data"],
    ["a frame far behind the last", ["uint8", [2], 2n ** 63n], "malformed", "feature.data"],
    ["nil for bytes", ["uint8", [2], null], "malformed", "feature.data"],
    ["a negative size", ["uint8", [2, -1], data], "malformed", "feature.shape[1]"],
    ["a size beyond the safe range", ["uint8", [2n ** 60n], data], "unsafe_integer", "feature.shape[0]"],
    ["a fraction as a size", ["uint8", [1.5], data], "malformed", "feature.shape"],
    ["a size for a shape", ["uint8", 2, data], "malformed", "feature.shape"],
    ["a number for a dtype", [3, [2], data], "malformed", "feature.dtype"],
    ["two elements", ["uint8", [2]], "malformed", "feature"],
    ["four elements", ["uint8", [2], data, null], "malformed", "feature"],
    ["a map", { dtype: "uint8" }, "malformed", "feature"],
  ])("%s", (_, tensor, code, path) => {
    const payload = encodeAny([1, null, null, null, tensor]);
    expect(errorOf(() => decodeMultimodalDataItem([payload, aux]))).toMatchObject({ code, path: `MultimodalDataItem.${path}` });
  });

  test("an index where no frames came says so", () => {
    const payload = encodeAny([1, null, null, null, ["uint8", [2], 1]]);
    const { message } = errorOf(() => decodeMultimodalDataItem([payload]));
    expect(message).toContain("expected inline bytes, since no frames came with the payload, found the index 1");
  });

  test("an inline tensor that is cut", () => {
    const [payload] = encodeMultimodalDataItem({ ...image(bytesTensor(200)) });
    const cut = payload.subarray(0, 100);
    expect(errorOf(() => decodeMultimodalDataItem([cut])).path).toBe("MultimodalDataItem.feature.data");
  });

  test.each<readonly [what: string, feature: unknown, code: string, path: string]>([
    ["bytes alone", Uint8Array.of(1), "unknown_field", "feature.0"],
    ["an array", [1], "invalid_value", "feature"],
    ["no dtype", { shape: [1], data: aux }, "missing_field", "feature.dtype"],
    ["no shape", { dtype: "uint8", data: aux }, "missing_field", "feature.shape"],
    ["no data", { dtype: "uint8", shape: [1] }, "missing_field", "feature.data"],
    ["a misspelt property", { type: "uint8", shape: [1], data: aux }, "unknown_field", "feature.type"],
    ["a number for a dtype", { dtype: 1, shape: [2], data: aux }, "invalid_value", "feature.dtype"],
    ["a number for a shape", { dtype: "uint8", shape: 2, data: aux }, "invalid_value", "feature.shape"],
    ["a negative size", { dtype: "uint8", shape: [1, -2], data: aux }, "invalid_value", "feature.shape[1]"],
    ["a fraction as a size", { dtype: "uint8", shape: [0.5], data: aux }, "invalid_value", "feature.shape[0]"],
    ["floats for bytes", { dtype: "float32", shape: [1], data: new Float32Array(1) }, "invalid_value", "feature.data"],
    ["fewer bytes than the shape asks for", { dtype: "float32", shape: [2, 3], data: new Uint8Array(20) }, "invalid_value", "feature.data"],
    ["more bytes than the shape asks for", { dtype: "bfloat16", shape: [], data: new Uint8Array(4) }, "invalid_value", "feature.data"],
  ])("%s, given to the encoder", (_, feature, code, path) => {
    const error = errorOf(() => encodeMultimodalDataItem({ modality: MODALITY_IMAGE, feature: feature as Tensor }));
    expect(error).toMatchObject({ code, path: `MultimodalDataItem.${path}` });
  });

  test("a dtype that is not known is the engine's to judge", () => {
    const tensor = { dtype: "float4_e2m1fn_x2", shape: [3], data: Uint8Array.of(1, 2) };
    expect(decodeMultimodalDataItem(encodeMultimodalDataItem(image(tensor))).feature).toEqual(tensor);
  });

  test.each([[undefined], [null], [[]], [Uint8Array.of(0x90)], ["text"], [["text"]], [[Uint8Array.of(0x90), 1]]])(
    "%o for frames",
    (frames) => {
      expect(errorOf(() => decodeEncodeRequest(frames as never))).toMatchObject({ code: "invalid_argument", path: "EncodeRequest" });
    },
  );
});

test("a room of 64 bits is a bigint, and a handshake what it is", () => {
  const room = 2n ** 63n + 5n;
  const frames = encodeEncodeRequest({
    requestId: "e",
    bootstrapHost: "10.0.0.5",
    bootstrapPort: 9001,
    bootstrapRoom: room,
    items: [{ modality: MODALITY_IMAGE, hash: 11, offsets: [[0, 4]], encodeHandshake: { bootstrap_room: room } }],
  });
  expect(decodeEncodeRequest(frames)).toMatchObject({
    bootstrapRoom: room,
    items: [{ hash: 11n, offsets: [[0, 4]], encodeHandshake: { bootstrap_room: room }, modelSpecificData: {} }],
  });
  expect(decodeMultimodalInputs(encodeMultimodalInputs({ mmItems: [] })).mmItems).toEqual([]);
});
