import { Failure, kindOf } from "./failure.ts";
import { invalidValue } from "./write-values.ts";
import { reserve, type Writer } from "./writer.ts";

/** Puts an integer in the smallest format at a position that has room for 9 bytes, and returns the position behind it. */
export function putInteger(bytes: Uint8Array, view: DataView, position: number, value: number): number {
  if (value >= 0) {
    if (value < 0x80) {
      bytes[position] = value;
      return position + 1;
    }
    if (value < 0x100) {
      bytes[position] = 0xcc;
      bytes[position + 1] = value;
      return position + 2;
    }
    if (value < 0x10000) {
      bytes[position] = 0xcd;
      bytes[position + 1] = value >>> 8;
      bytes[position + 2] = value;
      return position + 3;
    }
    if (value < 0x100000000) {
      bytes[position] = 0xce;
      view.setUint32(position + 1, value);
      return position + 5;
    }
    return putWide(bytes, view, position, 0xcf, value);
  }
  if (value >= -0x20) {
    bytes[position] = value;
    return position + 1;
  }
  if (value >= -0x80) {
    bytes[position] = 0xd0;
    bytes[position + 1] = value;
    return position + 2;
  }
  if (value >= -0x8000) {
    bytes[position] = 0xd1;
    view.setInt16(position + 1, value);
    return position + 3;
  }
  if (value >= -0x80000000) {
    bytes[position] = 0xd2;
    view.setInt32(position + 1, value);
    return position + 5;
  }
  return putWide(bytes, view, position, 0xd3, value);
}

function putWide(bytes: Uint8Array, view: DataView, position: number, format: number, value: number): number {
  bytes[position] = format;
  view.setInt32(position + 1, Math.floor(value / 0x100000000));
  view.setUint32(position + 5, value >>> 0);
  return position + 9;
}

/** Writes an integer in the smallest format, into room for 9 bytes that the caller has made. */
export function writeSafeInteger(writer: Writer, value: number): void {
  writer.position = putInteger(writer.bytes, writer.view, writer.position, value);
}

/** Writes a bigint in the smallest format, into room for 9 bytes; false where 64 bits do not hold it. */
export function writeBigInteger(writer: Writer, value: bigint): boolean {
  if (value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)) {
    writeSafeInteger(writer, Number(value));
    return true;
  }
  if (value < -(2n ** 63n) || value >= 2n ** 64n) return false;
  const { view, position } = writer;
  writer.bytes[position] = value < 0n ? 0xd3 : 0xcf;
  if (value < 0n) view.setBigInt64(position + 1, value);
  else view.setBigUint64(position + 1, value);
  writer.position = position + 9;
  return true;
}

function unsafeInteger(field: string, value: unknown): Failure {
  return new Failure("unsafe_integer", field, "an integer within -(2^53-1) .. 2^53-1", kindOf(value));
}

/** Writes a 64-bit signed field from a number or a bigint within the safe range. */
export function writeInt64(writer: Writer, value: unknown, field: string): void {
  reserve(writer, 9);
  writeSafeInteger(writer, isSmall(value) ? value : toSafeInteger(value, field));
}

/** A 64-bit signed field as a number; throws where it is none, or not exact. */
export function toSafeInteger(value: unknown, field: string): number {
  if (typeof value === "number") {
    if (Number.isSafeInteger(value)) return value;
    if (Number.isInteger(value)) throw unsafeInteger(field, value);
  } else if (typeof value === "bigint") {
    const number = Number(value);
    if (Number.isSafeInteger(number)) return number;
    throw unsafeInteger(field, value);
  }
  throw invalidValue(field, "an integer", value);
}

/** Writes a 64-bit unsigned field from a bigint or a safe number. */
export function writeUint64(writer: Writer, value: unknown, field: string): void {
  reserve(writer, 9);
  if (typeof value === "bigint") {
    if (value < 0n || !writeBigInteger(writer, value)) throw invalidValue(field, "an integer within 0 .. 2^64-1", value);
  } else {
    const number = toSafeInteger(value, field);
    if (number < 0) throw invalidValue(field, "an integer within 0 .. 2^64-1", value);
    writeSafeInteger(writer, number);
  }
}

function writeRanged(writer: Writer, value: unknown, field: string, low: number, high: number): void {
  if (typeof value !== "number" || !Number.isInteger(value) || value < low || value > high) {
    throw invalidValue(field, `an integer within ${low} .. ${high}`, value);
  }
  reserve(writer, 9);
  writeSafeInteger(writer, value);
}

/** Writes a 32-bit signed field. */
export function writeInt32(writer: Writer, value: unknown, field: string): void {
  writeRanged(writer, value, field, -0x80000000, 0x7fffffff);
}

/** Writes a 16-bit unsigned field. */
export function writeUint16(writer: Writer, value: unknown, field: string): void {
  writeRanged(writer, value, field, 0, 0xffff);
}

/** Writes a 32-bit unsigned field. */
export function writeUint32(writer: Writer, value: unknown, field: string): void {
  writeRanged(writer, value, field, 0, 0xffffffff);
}

/** Whether an integer has 32 bits, as most have: one comparison, without a call. */
export function isSmall(value: unknown): value is number {
  return typeof value === "number" && (value | 0) === value;
}
