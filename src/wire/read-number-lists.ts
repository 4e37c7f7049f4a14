import { within } from "./failure.ts";
import { readFloat64, readInt32, readInt64 } from "./read-numbers.ts";
import { int32At, newList, readArrayHeader, uint16At } from "./read-values.ts";
import type { Reader } from "./reader.ts";

/** Reads the numbers of a list whose header has been read; a failure's path begins with the index. */
type ReadNumbers = (reader: Reader, length: number) => number[];

/** Reads a list of 64-bit signed integers. */
export function readInt64List(reader: Reader, field: string): number[] {
  return readNumbers(reader, field, readInt64s);
}

/** Reads a list of 32-bit signed integers, such as token ids. */
export function readInt32List(reader: Reader, field: string): number[] {
  return readNumbers(reader, field, readInt32s);
}

/** Reads a list of floats of either width, or of integers, as Python does. */
export function readFloat64List(reader: Reader, field: string): number[] {
  return readNumbers(reader, field, readFloat64s);
}

/** Reads lists of 64-bit signed integers, such as shapes. */
export function readInt64ListList(reader: Reader, field: string): number[][] {
  return readRows(reader, field, readInt64s);
}

/** Reads lists of 32-bit signed integers, such as the tokens of a step, a list for each request. */
export function readInt32ListList(reader: Reader, field: string): number[][] {
  return readRows(reader, field, readInt32s);
}

/** Reads lists of floats, such as logprobs, a list for each request. */
export function readFloat64ListList(reader: Reader, field: string): number[][] {
  return readRows(reader, field, readFloat64s);
}

function readNumbers(reader: Reader, field: string, read: ReadNumbers): number[] {
  const length = readArrayHeader(reader, field);
  try {
    return read(reader, length);
  } catch (error) {
    throw within(error, field);
  }
}

function readRows(reader: Reader, field: string, read: ReadNumbers): number[][] {
  const length = readArrayHeader(reader, field);
  const rows = newList<number[]>(length);
  let i = 0;
  try {
    for (; i < length; i++) {
      const format = reader.bytes[reader.position] as number;
      if ((format & 0xf0) === 0x90) {
        reader.position++;
        rows[i] = read(reader, format & 0x0f);
      } else rows[i] = read(reader, readArrayHeader(reader, ""));
    }
    return rows;
  } catch (error) {
    throw within(within(error, i), field);
  }
}

// Up to four numbers in literals: those are allocated in line, at half the cost of `new Array`.

function readInt64s(reader: Reader, length: number): number[] {
  switch (length) {
    case 0:
      return [];
    case 1:
      return [nextInt64(reader, 0)];
    case 2:
      return [nextInt64(reader, 0), nextInt64(reader, 1)];
    case 3:
      return [nextInt64(reader, 0), nextInt64(reader, 1), nextInt64(reader, 2)];
    case 4:
      return [nextInt64(reader, 0), nextInt64(reader, 1), nextInt64(reader, 2), nextInt64(reader, 3)];
  }
  const list = new Array<number>(length);
  for (let i = 0; i < length; i++) list[i] = nextInt64(reader, i);
  return list;
}

function nextInt64(reader: Reader, index: number): number {
  const value = nextSmall(reader);
  return value >= 0 ? value : readAt(reader, index, readInt64);
}

function readInt32s(reader: Reader, length: number): number[] {
  switch (length) {
    case 0:
      return [];
    case 1:
      return [nextInt32(reader, 0)];
    case 2:
      return [nextInt32(reader, 0), nextInt32(reader, 1)];
    case 3:
      return [nextInt32(reader, 0), nextInt32(reader, 1), nextInt32(reader, 2)];
    case 4:
      return [nextInt32(reader, 0), nextInt32(reader, 1), nextInt32(reader, 2), nextInt32(reader, 3)];
  }
  const list = new Array<number>(length);
  for (let i = 0; i < length; i++) list[i] = nextInt32(reader, i);
  return list;
}

function nextInt32(reader: Reader, index: number): number {
  const value = nextSmall(reader);
  return value >= 0 ? value : readAt(reader, index, readInt32);
}

/** Reads an integer from 0 to 2^31-1 in a format that the smallest one is of; -1 and nothing read where another is next. */
function nextSmall(reader: Reader): number {
  const { bytes, position, end } = reader;
  const format = bytes[position] as number;
  if (format < 0x80) {
    reader.position = position + 1;
    return format;
  }
  if (format === 0xcd && position + 3 <= end) {
    reader.position = position + 3;
    return uint16At(bytes, position + 1);
  }
  if (format === 0xce && position + 5 <= end) {
    const value = int32At(bytes, position + 1);
    if (value >= 0) {
      reader.position = position + 5;
      return value;
    }
  }
  if (format === 0xcc && position + 2 <= end) {
    reader.position = position + 2;
    return bytes[position + 1] as number;
  }
  return -1;
}

function readFloat64s(reader: Reader, length: number): number[] {
  if (length === 0) return [];
  const view = reader.dataView();
  if (length === 1) return [nextFloat64(reader, view, 0)];
  if (length === 2) return [nextFloat64(reader, view, 0), nextFloat64(reader, view, 1)];
  const list = new Array<number>(length);
  for (let i = 0; i < length; i++) list[i] = nextFloat64(reader, view, i);
  return list;
}

function nextFloat64(reader: Reader, view: DataView, index: number): number {
  const { bytes, position } = reader;
  if (bytes[position] === 0xcb && position + 9 <= reader.end) {
    reader.position = position + 9;
    return view.getFloat64(position + 1);
  }
  return readAt(reader, index, readFloat64);
}

/** Reads one number of any format that its type takes. */
function readAt(reader: Reader, index: number, read: (reader: Reader, field: string) => number): number {
  try {
    return read(reader, "");
  } catch (error) {
    throw within(error, index);
  }
}
