import { Failure, kindOf, toWireError, within } from "./failure.ts";
import { readExtHeader } from "./read-ext.ts";
import { readInteger } from "./read-numbers.ts";
import { readRepeatedStr } from "./read-text.ts";
import { newList, readArrayHeader, readCopy } from "./read-values.ts";
import { decodeWith, formatName, malformed, type Reader, unexpected } from "./reader.ts";
import { rawBytes, type Tensor } from "./tensor.ts";
import { isBytes } from "./values.ts";

/**
 * Reads a tensor: inline bytes are copied, those in a frame are a view of that frame. Whether they are as many as its shape
 * and dtype ask for is not checked, as no decoder of this wire does.
 */
export function readTensor(reader: Reader, field: string): Tensor {
  const { position } = reader;
  const length = readArrayHeader(reader, field);
  if (length !== 3) throw malformed(field, "a tensor, an array of 3", `an array of ${length}`, position);
  try {
    return { dtype: readRepeatedStr(reader, "dtype"), shape: readShape(reader), data: readData(reader, "data") };
  } catch (error) {
    throw within(error, field);
  }
}

function readShape(reader: Reader): number[] {
  const length = readArrayHeader(reader, "shape");
  const shape = newList<number>(length);
  for (let i = 0; i < length; i++) {
    const { position } = reader;
    const size = readInteger(reader, "shape");
    if (typeof size === "number" && size >= 0) shape[i] = size;
    else
      throw new Failure(
        size < 0 ? "malformed" : "unsafe_integer",
        `shape[${i}]`,
        "an integer within 0 .. 2^53-1",
        `the integer ${size}`,
        position,
      );
  }
  return shape;
}

function readData(reader: Reader, field: string): Uint8Array {
  const { position, frames } = reader;
  const format = reader.bytes[position];
  const name = format === undefined ? "" : formatName(format);
  if (name === "ext") {
    const { type, length } = readExtHeader(reader, field);
    if (type !== rawBytes) throw malformed(field, `the extension type ${rawBytes}`, `the extension type ${type}`, position);
    return readCopy(reader, field, reader.position, length);
  }
  if (name !== "int") throw unexpected(reader, field, "ext or the index of a frame");
  const index = readInteger(reader, field);
  // Frame 0 is the payload itself.
  const frame = index > 0 && index < frames.length ? frames[Number(index)] : undefined;
  if (frame === undefined) {
    const expected = frames.length < 2 ? "inline bytes, since no frames came with the payload" : `a frame within 1 .. ${frames.length - 1}`;
    throw malformed(field, expected, `the index ${index}`, position);
  }
  // A Buffer's view would be a Buffer.
  return new Uint8Array(frame.buffer, frame.byteOffset, frame.byteLength);
}

/** Decodes one message from its frames: the payload, then those that tensors name by index, the first being 1. */
export function decodeFramesWith<Value>(
  read: (reader: Reader, field: string) => Value,
  frames: readonly Uint8Array[],
  name: string,
  maxDepth?: number,
): Value {
  const readFramed = (reader: Reader, field: string): Value => {
    reader.frames = frames;
    return read(reader, field);
  };
  return decodeWith(readFramed, payloadOf(frames, name), name, maxDepth);
}

function payloadOf(frames: unknown, name: string): Uint8Array {
  const list: readonly unknown[] = Array.isArray(frames) ? frames : [];
  const odd = list.findIndex((frame) => !isBytes(frame));
  if (list.length > 0 && odd < 0) return list[0] as Uint8Array;
  const found = Array.isArray(frames) ? (odd < 0 ? "an empty array" : `${kindOf(list[odd])} at ${odd}`) : kindOf(frames);
  throw toWireError(new Failure("invalid_argument", name, "an array of frames as Uint8Arrays, the payload first", found));
}
