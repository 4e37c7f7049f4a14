import { within } from "./failure.ts";
import { isSmall, putInteger, toSafeInteger } from "./write-integers.ts";
import { invalidValue, putDouble, writeArrayHeader } from "./write-values.ts";
import { reserve, type Writer } from "./writer.ts";

/** So many numbers share one check for room. */
const chunk = 64;

/** Writes a list of 64-bit signed integers. */
export function writeInt64List(writer: Writer, value: unknown, field: string): void {
  writeIntegers(writer, value, field, toInt64);
}

/** Writes a list of 32-bit signed integers, such as token ids. */
export function writeInt32List(writer: Writer, value: unknown, field: string): void {
  writeIntegers(writer, value, field, refuseInt32);
}

/** Writes lists of 64-bit signed integers, such as shapes. */
export function writeInt64ListList(writer: Writer, value: unknown, field: string): void {
  writeIntegerRows(writer, value, field, toInt64);
}

/** Writes lists of 32-bit signed integers, such as the tokens of a step, a list for each request. */
export function writeInt32ListList(writer: Writer, value: unknown, field: string): void {
  writeIntegerRows(writer, value, field, refuseInt32);
}

type Convert = (value: unknown, field: string, index: number) => number;

function toInt64(value: unknown, field: string, index: number): number {
  return typeof value === "number" && Number.isSafeInteger(value) ? value : toSafeInteger(value, `${field}[${index}]`);
}

function refuseInt32(value: unknown, field: string, index: number): never {
  throw invalidValue(`${field}[${index}]`, `an integer within ${-0x80000000} .. ${0x7fffffff}`, value);
}

/** Writes integers; those that have not 32 bits go through `convert`. */
function writeIntegers(writer: Writer, value: unknown, field: string, convert: Convert): void {
  if (!Array.isArray(value)) throw invalidValue(field, "an array", value);
  const list: readonly unknown[] = value;
  const { length } = list;
  let i = 0;
  do {
    const stop = length - i > chunk ? i + chunk : length;
    reserve(writer, 5 + 9 * (stop - i));
    if (i === 0) writeArrayHeader(writer, length);
    const { bytes, view } = writer;
    let { position } = writer;
    for (; i < stop; i++) {
      const item = list[i];
      position = putInteger(bytes, view, position, isSmall(item) ? item : convert(item, field, i));
    }
    writer.position = position;
  } while (i < length);
}

/** Writes a list of floats, each as a float64. */
export function writeFloat64List(writer: Writer, value: unknown, field: string): void {
  if (!Array.isArray(value)) throw invalidValue(field, "an array", value);
  const list: readonly unknown[] = value;
  const { length } = list;
  reserve(writer, 5 + 9 * length);
  writeArrayHeader(writer, length);
  const { bytes, view } = writer;
  let { position } = writer;
  for (let i = 0; i < length; i++) {
    const item = list[i];
    if (typeof item !== "number") throw invalidValue(`${field}[${i}]`, "a number", item);
    position = putDouble(bytes, view, position, item);
  }
  writer.position = position;
}

/** Rows of up to so many numbers are written where they stand, with one check for room. */
const shortRow = 15;

function writeIntegerRows(writer: Writer, value: unknown, field: string, convert: Convert): void {
  if (!Array.isArray(value)) throw invalidValue(field, "an array", value);
  const rows: readonly unknown[] = value;
  const { length } = rows;
  writeArrayHeader(writer, length);
  let i = 0;
  try {
    for (; i < length; i++) {
      const row = rows[i];
      const items: readonly unknown[] = Array.isArray(row) ? row : [];
      const count = items.length;
      if (items !== row || count > shortRow) {
        writeIntegers(writer, row, "", convert);
        continue;
      }
      reserve(writer, 1 + 9 * shortRow);
      const { bytes, view } = writer;
      let { position } = writer;
      bytes[position++] = 0x90 | count;
      for (let j = 0; j < count; j++) {
        const item = items[j];
        position = putInteger(bytes, view, position, isSmall(item) ? item : convert(item, "", j));
      }
      writer.position = position;
    }
  } catch (error) {
    throw within(within(error, i), field);
  }
}

/** Writes lists of floats, such as logprobs, a list for each request. */
export function writeFloat64ListList(writer: Writer, value: unknown, field: string): void {
  if (!Array.isArray(value)) throw invalidValue(field, "an array", value);
  const rows: readonly unknown[] = value;
  const { length } = rows;
  writeArrayHeader(writer, length);
  let i = 0;
  try {
    for (; i < length; i++) writeFloat64List(writer, rows[i], "");
  } catch (error) {
    throw within(within(error, i), field);
  }
}
