import { Failure, isWellFormed, within } from "./failure.ts";
import { nativeText } from "./native-text.ts";
import { invalidValue, writeArrayHeader } from "./write-values.ts";
import { reserve, type Writer } from "./writer.ts";

/** Up to this length a loop in JavaScript beats the call of a native method. */
export const loopedText: number = nativeText === null ? 48 : 24;
/** Above this length the exact size is measured first instead of reserving three bytes for each character. */
const measuredText = 1 << 12;

const encoder = /* @__PURE__ */ new TextEncoder();

/** Length of a string's header. */
export function strHeaderLength(length: number): number {
  return length < 32 ? 1 : length < 0x100 ? 2 : length < 0x10000 ? 3 : 5;
}

/** Writes a string's header at a position that has room, and returns the position behind it. */
export function putStrHeader(bytes: Uint8Array, position: number, length: number): number {
  if (length < 32) {
    bytes[position] = 0xa0 | length;
    return position + 1;
  }
  if (length < 0x100) {
    bytes[position] = 0xd9;
    bytes[position + 1] = length;
    return position + 2;
  }
  if (length < 0x10000) {
    bytes[position] = 0xda;
    bytes[position + 1] = length >>> 8;
    bytes[position + 2] = length;
    return position + 3;
  }
  bytes[position] = 0xdb;
  bytes[position + 1] = length >>> 24;
  bytes[position + 2] = length >>> 16;
  bytes[position + 3] = length >>> 8;
  bytes[position + 4] = length;
  return position + 5;
}

/** Writes a string. */
export function writeStr(writer: Writer, value: unknown, field: string): void {
  if (typeof value !== "string") throw invalidValue(field, "a string", value);
  const { length } = value;
  if (length > loopedText) {
    writeLongStr(writer, value, field);
    return;
  }
  reserve(writer, 2 + length);
  const { bytes, position } = writer;
  const start = putStrHeader(bytes, position, length);
  for (let i = 0; i < length; i++) {
    const character = value.charCodeAt(i);
    if (character > 0x7f) {
      writeLongStr(writer, value, field);
      return;
    }
    bytes[start + i] = character;
  }
  writer.position = start + length;
}

function writeLongStr(writer: Writer, text: string, field: string): void {
  const { length } = text;
  if (length > measuredText) {
    writeMeasuredStr(writer, text, field);
    return;
  }
  reserve(writer, 5 + 3 * length);
  const { bytes, position } = writer;
  const headerLength = strHeaderLength(length);
  const start = position + headerLength;
  const written =
    nativeText === null
      ? encoder.encodeInto(text, bytes.subarray(start)).written
      : nativeText.utf8Write.call(bytes, text, start, 3 * length);
  // As many bytes as characters is ASCII; only other text can have a lone surrogate, which the encoders replace.
  if (written !== length) {
    if (!isWellFormed(text)) throw loneSurrogate(field, text);
    const exact = strHeaderLength(written);
    if (exact !== headerLength) bytes.copyWithin(position + exact, start, start + written);
  }
  writer.position = putStrHeader(bytes, position, written) + written;
}

function writeMeasuredStr(writer: Writer, text: string, field: string): void {
  const encoded = nativeText === null ? encoder.encode(text) : null;
  const length = encoded === null ? (nativeText as NonNullable<typeof nativeText>).byteLength(text) : encoded.length;
  if (length !== text.length && !isWellFormed(text)) throw loneSurrogate(field, text);
  reserve(writer, 5 + length);
  const { bytes } = writer;
  const start = putStrHeader(bytes, writer.position, length);
  if (encoded !== null) bytes.set(encoded, start);
  else nativeText?.utf8Write.call(bytes, text, start, length);
  writer.position = start + length;
}

function loneSurrogate(field: string, text: string): Failure {
  return new Failure("invalid_value", field, "text that UTF-8 can hold", `a string of ${text.length} characters with a lone surrogate`);
}

/** Writes a request id: one string, or a list of them. */
export function writeStrOrList(writer: Writer, value: unknown, field: string): void {
  if (typeof value === "string") writeStr(writer, value, field);
  else if (Array.isArray(value)) writeStrItems(writer, value, field);
  else throw invalidValue(field, "a string or an array of strings", value);
}

/** Writes a list of strings one by one. A string equal to the one before it, as most dtype names are, is copied. */
export function writeStrItems(writer: Writer, list: readonly unknown[], field: string): void {
  const { length } = list;
  writeArrayHeader(writer, length);
  let before: unknown;
  let size = 0;
  let i = 0;
  try {
    for (; i < length; i++) {
      const item = list[i];
      if (item === before && item !== undefined) copyBack(writer, size);
      else {
        const { bytes, position } = writer;
        writeStr(writer, item, "");
        size = writer.position - position;
        // Positions in a block that moved on the way do not compare.
        before = size <= copiedText && bytes === writer.bytes ? item : undefined;
      }
    }
  } catch (error) {
    throw within(within(error, i), field);
  }
}

/** Longer texts are not copied: that would be slower than writing them. */
const copiedText = 64;

/** Repeats the last bytes, four at a time. Up to three bytes behind them are overwritten by what follows. */
function copyBack(writer: Writer, size: number): void {
  reserve(writer, size + 3);
  const { view, position } = writer;
  const source = position - size;
  for (let i = 0; i < size; i += 4) view.setInt32(position + i, view.getInt32(source + i));
  writer.position = position + size;
}
