import { Failure, within } from "./failure.ts";
import { type Frames, framedLength, rawBytes } from "./tensor.ts";
import { isBytes } from "./values.ts";
import { writeExt } from "./write-ext.ts";
import { writeSafeInteger } from "./write-integers.ts";
import { checkProperties, missingField } from "./write-struct.ts";
import { writeStr } from "./write-text.ts";
import { invalidValue, writeArrayHeader } from "./write-values.ts";
import { encodeWith, reserve, type Writer } from "./writer.ts";

const properties: readonly string[] = ["dtype", "shape", "data"];

/**
 * Writes a tensor. Bytes below 256 are inline; more become a frame, a copy, since the message may leave after the caller
 * has put other numbers where they were. Without anybody to take frames all are inline, which decoders accept.
 */
export function writeTensor(writer: Writer, value: unknown, field: string): void {
  try {
    checkProperties(value, properties);
    const { dtype, shape, data } = value as { readonly [property: string]: unknown };
    if (dtype === undefined || shape === undefined || data === undefined) {
      throw missingField(dtype === undefined ? "dtype" : shape === undefined ? "shape" : "data");
    }
    if (!isBytes(data)) throw invalidValue("data", "a Uint8Array", data);
    writeArrayHeader(writer, 3);
    writeStr(writer, dtype, "dtype");
    checkLength(dtype as string, writeShape(writer, shape), data.length);
    const { frames } = writer;
    if (data.length < framedLength || frames === undefined) writeExt(writer, rawBytes, data, "data");
    else {
      reserve(writer, 9);
      writeSafeInteger(writer, frames.push(new Uint8Array(data)));
    }
  } catch (error) {
    throw within(error, field);
  }
}

/** Writes a shape and returns how many elements it has room for. */
function writeShape(writer: Writer, shape: unknown): number {
  if (!Array.isArray(shape)) throw invalidValue("shape", "an array of integers", shape);
  const sizes: readonly unknown[] = shape;
  const { length } = sizes;
  writeArrayHeader(writer, length);
  let elements = 1;
  for (let i = 0; i < length; i++) {
    const size = sizes[i];
    if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0) {
      throw invalidValue(`shape[${i}]`, "an integer within 0 .. 2^53-1", size);
    }
    reserve(writer, 9);
    writeSafeInteger(writer, size);
    elements *= size;
  }
  return elements;
}

/** Bytes of an element by dtype; a dtype that is not here is the engine's to judge. */
const sizes = /* @__PURE__ */ new Map<string, number>([
  ...["bool", "uint8", "int8", "float8_e4m3fn", "float8_e5m2"].map((dtype) => [dtype, 1] as const),
  ...["uint16", "int16", "float16", "bfloat16"].map((dtype) => [dtype, 2] as const),
  ...["uint32", "int32", "float32"].map((dtype) => [dtype, 4] as const),
  ...["uint64", "int64", "float64", "complex64"].map((dtype) => [dtype, 8] as const),
]);

// An engine cannot make a tensor of other bytes than these, and drops the whole request without an answer.
function checkLength(dtype: string, elements: number, length: number): void {
  const size = sizes.get(dtype);
  if (size === undefined || size * elements === length) return;
  throw new Failure("invalid_value", "data", `${size * elements} bytes, as its shape and dtype ask for`, `${length} bytes`);
}

/** Encodes one message to its frames: the payload, then those of tensors in the order in which they stand in it. */
export function encodeFramesWith<Init>(
  write: (writer: Writer, init: Init, field: string) => void,
  init: Init,
  name: string,
  maxDepth?: number,
): Frames {
  const frames: Uint8Array<ArrayBuffer>[] = [];
  const writeFramed = (writer: Writer, value: Init, field: string): void => {
    writer.frames = frames;
    try {
      write(writer, value, field);
    } finally {
      writer.frames = undefined;
    }
  };
  return [encodeWith(writeFramed, init, name, maxDepth), ...frames];
}
