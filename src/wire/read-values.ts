import { Failure } from "./failure.ts";
import { malformed, type Reader, truncated, unexpected } from "./reader.ts";

/** Reads nil where it is next; false and nothing read where it is not. */
export function readNil(reader: Reader): boolean {
  if (reader.bytes[reader.position] !== 0xc0) return false;
  reader.position++;
  return true;
}

/** Reads a boolean. */
export function readBool(reader: Reader, field: string): boolean {
  const format = reader.bytes[reader.position];
  if (format === 0xc3 || format === 0xc2) {
    reader.position++;
    return format === 0xc3;
  }
  throw unexpected(reader, field, "bool");
}

/** Reads 16 bits; the caller has checked that they are there. */
export function uint16At(bytes: Uint8Array, position: number): number {
  return ((bytes[position] as number) << 8) | (bytes[position + 1] as number);
}

/** Reads 32 bits as a signed integer; the caller has checked that they are there. */
export function int32At(bytes: Uint8Array, position: number): number {
  return (
    ((bytes[position] as number) << 24) |
    ((bytes[position + 1] as number) << 16) |
    ((bytes[position + 2] as number) << 8) |
    (bytes[position + 3] as number)
  );
}

/** Reads 32 bits as an unsigned integer; the caller has checked that they are there. */
export function uint32At(bytes: Uint8Array, position: number): number {
  return int32At(bytes, position) >>> 0;
}

/** Throws where fewer than so many bytes are left from a position on. */
export function need(reader: Reader, position: number, length: number, field: string): void {
  if (position + length > reader.end) throw truncated(reader, field);
}

/** Reads an array's header. Its length is never more than the bytes left, so it is safe to allocate for. */
export function readArrayHeader(reader: Reader, field: string): number {
  return readContainerHeader(reader, field, 0x90, 0xdc, 1, "array");
}

/** Longer lists grow as they are read: nested, each might claim all that is left of the message. */
const preparedLength = 4096;

/** An empty list for so many elements. */
export function newList<Item>(length: number): Item[] {
  return length > preparedLength ? [] : new Array<Item>(length);
}

/** Reads a map's header. Its length is never more than half the bytes left. */
export function readMapHeader(reader: Reader, field: string): number {
  return readContainerHeader(reader, field, 0x80, 0xde, 2, "map");
}

function readContainerHeader(reader: Reader, field: string, fix: number, wide: number, least: number, name: string): number {
  const { bytes, position } = reader;
  const format = bytes[position] as number;
  let length: number;
  if ((format & 0xf0) === fix) {
    length = format & 0x0f;
    reader.position = position + 1;
  } else if (format === wide) {
    need(reader, position, 3, field);
    length = uint16At(bytes, position + 1);
    reader.position = position + 3;
  } else if (format === wide + 1) {
    need(reader, position, 5, field);
    length = uint32At(bytes, position + 1);
    reader.position = position + 5;
  } else throw unexpected(reader, field, name);
  if (length * least > reader.end - reader.position) {
    throw malformed(field, `${length} elements`, `${reader.end - reader.position} bytes`, position);
  }
  return length;
}

/** Reads bytes into an array of their own. */
export function readBin(reader: Reader, field: string): Uint8Array<ArrayBuffer> {
  const { bytes, position } = reader;
  let length: number;
  let start: number;
  switch (bytes[position]) {
    case 0xc4:
      need(reader, position, 2, field);
      length = bytes[position + 1] as number;
      start = position + 2;
      break;
    case 0xc5:
      need(reader, position, 3, field);
      length = uint16At(bytes, position + 1);
      start = position + 3;
      break;
    case 0xc6:
      need(reader, position, 5, field);
      length = uint32At(bytes, position + 1);
      start = position + 5;
      break;
    default:
      throw unexpected(reader, field, "bin");
  }
  return readCopy(reader, field, start, length);
}

/** Copies a payload out and goes behind it. */
export function readCopy(reader: Reader, field: string, start: number, length: number): Uint8Array<ArrayBuffer> {
  need(reader, start, length, field);
  const copy = new Uint8Array(length);
  copy.set(reader.bytes.subarray(start, start + length));
  reader.position = start + length;
  return copy;
}

/** A required field that the message does not have. */
export function missingElement(reader: Reader, field: string): never {
  throw new Failure("missing_field", field, "a value, since it has no default", "the end of the struct", reader.position);
}
