import { Failure } from "./failure.ts";
import { int32At, need, uint16At, uint32At } from "./read-values.ts";
import { malformed, type Reader, unexpected } from "./reader.ts";

/** Reads an integer of any width; a bigint where a number would round it. */
export function readInteger(reader: Reader, field: string): number | bigint {
  const { bytes, position } = reader;
  const format = bytes[position] as number;
  if (format < 0x80) {
    reader.position = position + 1;
    return format;
  }
  if (format >= 0xe0) {
    reader.position = position + 1;
    return format - 0x100;
  }
  switch (format) {
    case 0xcc:
      need(reader, position, 2, field);
      reader.position = position + 2;
      return bytes[position + 1] as number;
    case 0xcd:
      need(reader, position, 3, field);
      reader.position = position + 3;
      return uint16At(bytes, position + 1);
    case 0xce:
      need(reader, position, 5, field);
      reader.position = position + 5;
      return uint32At(bytes, position + 1);
    case 0xcf:
    case 0xd3:
      return readWide(reader, field, format === 0xd3);
    case 0xd0:
      need(reader, position, 2, field);
      reader.position = position + 2;
      return ((bytes[position + 1] as number) << 24) >> 24;
    case 0xd1:
      need(reader, position, 3, field);
      reader.position = position + 3;
      return (uint16At(bytes, position + 1) << 16) >> 16;
    case 0xd2:
      need(reader, position, 5, field);
      reader.position = position + 5;
      return int32At(bytes, position + 1);
    default:
      throw unexpected(reader, field, "int");
  }
}

function readWide(reader: Reader, field: string, signed: boolean): number | bigint {
  const { bytes, position } = reader;
  need(reader, position, 9, field);
  const high = signed ? int32At(bytes, position + 1) : uint32At(bytes, position + 1);
  const low = uint32At(bytes, position + 5);
  reader.position = position + 9;
  const value = high * 0x100000000 + low;
  return Number.isSafeInteger(value) ? value : (BigInt(high) << 32n) | BigInt(low);
}

/** Reads a 64-bit signed field; refuses what a number cannot hold exactly. */
export function readInt64(reader: Reader, field: string): number {
  const { position } = reader;
  const format = reader.bytes[position] as number;
  if (format < 0x80) {
    reader.position = position + 1;
    return format;
  }
  const value = readInteger(reader, field);
  if (typeof value === "number") return value;
  throw new Failure("unsafe_integer", field, "an integer within -(2^53-1) .. 2^53-1", `the integer ${value}`, position);
}

/** Reads a 64-bit unsigned field. */
export function readUint64(reader: Reader, field: string): bigint {
  const { position } = reader;
  const value = readInteger(reader, field);
  if (value < 0) throw malformed(field, "an integer within 0 .. 2^64-1", `the integer ${value}`, position);
  return BigInt(value);
}

function readRanged(reader: Reader, field: string, low: number, high: number): number {
  const { position } = reader;
  const value = readInteger(reader, field);
  if (typeof value === "number" && value >= low && value <= high) return value;
  throw malformed(field, `an integer within ${low} .. ${high}`, `the integer ${value}`, position);
}

/** Reads a 32-bit signed field. */
export function readInt32(reader: Reader, field: string): number {
  return readRanged(reader, field, -0x80000000, 0x7fffffff);
}

/** Reads a 16-bit unsigned field. */
export function readUint16(reader: Reader, field: string): number {
  return readRanged(reader, field, 0, 0xffff);
}

/** Reads a 32-bit unsigned field. */
export function readUint32(reader: Reader, field: string): number {
  return readRanged(reader, field, 0, 0xffffffff);
}

// Eight bytes of our own: a DataView of the message costs more than many small messages altogether.
const scratch = /* @__PURE__ */ new DataView(/* @__PURE__ */ new ArrayBuffer(8));

/** Reads a float64 or float32; the caller has seen its format. */
export function readFloat(reader: Reader, field: string): number {
  const { bytes, position } = reader;
  if (bytes[position] === 0xcb) {
    need(reader, position, 9, field);
    scratch.setInt32(0, int32At(bytes, position + 1));
    scratch.setInt32(4, int32At(bytes, position + 5));
    reader.position = position + 9;
    return scratch.getFloat64(0);
  }
  need(reader, position, 5, field);
  scratch.setInt32(0, int32At(bytes, position + 1));
  reader.position = position + 5;
  return scratch.getFloat32(0);
}

/** Reads a float field: a float of either width, or an integer, as Python does. */
export function readFloat64(reader: Reader, field: string): number {
  const format = reader.bytes[reader.position];
  if (format === 0xcb || format === 0xca) return readFloat(reader, field);
  if (format === undefined || !isIntegerFormat(format)) throw unexpected(reader, field, "float");
  return Number(readInteger(reader, field));
}

function isIntegerFormat(format: number): boolean {
  return format < 0x80 || format >= 0xe0 || (format >= 0xcc && format <= 0xd3);
}
