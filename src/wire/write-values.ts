import { Failure, kindOf } from "./failure.ts";
import type { Head } from "./head.ts";
import { isBytes } from "./values.ts";
import { reserve, type Writer } from "./writer.ts";

/** A value that the field's type does not hold. */
export function invalidValue(field: string, expected: string, value: unknown): Failure {
  return new Failure("invalid_value", field, expected, kindOf(value));
}

/** Writes a struct's header and tag. Up to three bytes behind it are overwritten by what follows. */
export function writeHead(writer: Writer, head: Head): void {
  const { words, length } = head;
  const count = words.length;
  reserve(writer, 4 * count);
  const { view, position } = writer;
  for (let i = 0; i < count; i++) view.setInt32(position + 4 * i, words[i] as number);
  writer.position = position + length;
}

/** Writes bytes that the generator prepared, one for each character: keys and defaults. */
export function writeRaw(writer: Writer, raw: string): void {
  const { length } = raw;
  reserve(writer, length);
  const { bytes, position } = writer;
  for (let i = 0; i < length; i++) bytes[position + i] = raw.charCodeAt(i);
  writer.position = position + length;
}

/** Writes nil. */
export function writeNil(writer: Writer): void {
  reserve(writer, 1);
  writer.bytes[writer.position++] = 0xc0;
}

/** Writes a boolean. */
export function writeBool(writer: Writer, value: unknown, field: string): void {
  if (typeof value !== "boolean") throw invalidValue(field, "a boolean", value);
  reserve(writer, 1);
  writer.bytes[writer.position++] = value ? 0xc3 : 0xc2;
}

/** Writes a float field: always a float64, also where the number is integral. */
export function writeFloat64(writer: Writer, value: unknown, field: string): void {
  if (typeof value !== "number") throw invalidValue(field, "a number", value);
  reserve(writer, 9);
  writeDouble(writer, value);
}

/** Writes a float64 into room that the caller has made. */
export function writeDouble(writer: Writer, value: number): void {
  writer.position = putDouble(writer.bytes, writer.view, writer.position, value);
}

/** Puts a float64 at a position that has room for 9 bytes, and returns the position behind it. */
export function putDouble(bytes: Uint8Array, view: DataView, position: number, value: number): number {
  bytes[position] = 0xcb;
  view.setFloat64(position + 1, value);
  // msgspec writes one NaN; the bits of JavaScript's are not specified.
  if (Number.isNaN(value)) {
    view.setUint32(position + 1, 0x7ff80000);
    view.setUint32(position + 5, 0);
  }
  return position + 9;
}

/** Writes an array's header. */
export function writeArrayHeader(writer: Writer, length: number): void {
  writeContainerHeader(writer, length, 0x90, 0xdc);
}

/** Writes a map's header. */
export function writeMapHeader(writer: Writer, length: number): void {
  writeContainerHeader(writer, length, 0x80, 0xde);
}

function writeContainerHeader(writer: Writer, length: number, fix: number, wide: number): void {
  reserve(writer, 5);
  const { bytes, position } = writer;
  if (length < 16) {
    bytes[position] = fix | length;
    writer.position = position + 1;
  } else if (length < 0x10000) {
    bytes[position] = wide;
    bytes[position + 1] = length >>> 8;
    bytes[position + 2] = length;
    writer.position = position + 3;
  } else {
    bytes[position] = wide + 1;
    writer.view.setUint32(position + 1, length);
    writer.position = position + 5;
  }
}

/** Writes bytes. */
export function writeBin(writer: Writer, value: unknown, field: string): void {
  if (!isBytes(value)) throw invalidValue(field, "a Uint8Array", value);
  const { length } = value;
  reserve(writer, 5 + length);
  const { bytes, position } = writer;
  if (length < 0x100) {
    bytes[position] = 0xc4;
    bytes[position + 1] = length;
    writer.position = position + 2;
  } else if (length < 0x10000) {
    bytes[position] = 0xc5;
    bytes[position + 1] = length >>> 8;
    bytes[position + 2] = length;
    writer.position = position + 3;
  } else {
    bytes[position] = 0xc6;
    writer.view.setUint32(position + 1, length);
    writer.position = position + 5;
  }
  bytes.set(value, writer.position);
  writer.position += length;
}
