import { Failure } from "./failure.ts";
import { readFloat64, readInt32, readInt64 } from "./read-numbers.ts";
import { readArrayHeader } from "./read-values.ts";
import type { Reader } from "./reader.ts";
import { skipValues } from "./skip.ts";

/** Reads a list of 64-bit signed integers. */
export function readInt64List(reader: Reader, field: string): number[] {
  const length = readArrayHeader(reader, field);
  const { position } = reader;
  try {
    // Literals are allocated in line: half the cost of `new Array` for the short lists that shapes are.
    switch (length) {
      case 0:
        return [];
      case 1:
        return [readInt64(reader, "")];
      case 2:
        return [readInt64(reader, ""), readInt64(reader, "")];
      case 3:
        return [readInt64(reader, ""), readInt64(reader, ""), readInt64(reader, "")];
      case 4:
        return [readInt64(reader, ""), readInt64(reader, ""), readInt64(reader, ""), readInt64(reader, "")];
    }
    const list = new Array<number>(length);
    for (let i = 0; i < length; i++) list[i] = readInt64(reader, "");
    return list;
  } catch (error) {
    throw atElement(reader, error, field, position);
  }
}

/** Reads a list of 32-bit signed integers, such as the tokens of a step. */
export function readInt32List(reader: Reader, field: string): number[] {
  const length = readArrayHeader(reader, field);
  const { position } = reader;
  try {
    if (length === 0) return [];
    if (length === 1) return [readInt32(reader, "")];
    const list = new Array<number>(length);
    for (let i = 0; i < length; i++) list[i] = readInt32(reader, "");
    return list;
  } catch (error) {
    throw atElement(reader, error, field, position);
  }
}

/** Reads a list of floats of either width, or integers, as Python does. */
export function readFloat64List(reader: Reader, field: string): number[] {
  const length = readArrayHeader(reader, field);
  const { position } = reader;
  try {
    if (length === 0) return [];
    if (length === 1) return [readFloat64(reader, "")];
    const list = new Array<number>(length);
    for (let i = 0; i < length; i++) list[i] = readFloat64(reader, "");
    return list;
  } catch (error) {
    throw atElement(reader, error, field, position);
  }
}

// Which element failed is found by reading those before it again: counting them all the time would cost every list.
function atElement(reader: Reader, error: unknown, field: string, start: number): unknown {
  if (!(error instanceof Failure)) return error;
  const failed = error.offset === reader.end ? reader.position : (error.offset ?? 0);
  reader.position = start;
  let index = 0;
  while (reader.position < failed) {
    skipValues(reader, 1, "");
    index++;
  }
  error.path = `${field}[${index}]`;
  return error;
}
