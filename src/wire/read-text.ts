import { within } from "./failure.ts";
import { nativeText } from "./native-text.ts";
import { need, readArrayHeader, uint16At, uint32At } from "./read-values.ts";
import { malformed, type Reader, unexpected } from "./reader.ts";

/** Up to this length a string is put together from its bytes; a native call of Node's costs more. */
const assembledText = 12;
/** Up to this length it is worth looking whether a string is ASCII. */
const scannedText: number = nativeText === null ? 24 : 64;
/** Strings up to this length are looked up among those read before. */
const cachedText = 40;

const decoder = /* @__PURE__ */ new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Reads a string's header, goes to its first byte, and returns its length in bytes, all of which are there. */
export function readStrHeader(reader: Reader, field: string): number {
  const { bytes, position } = reader;
  const format = bytes[position] as number;
  let length: number;
  let start: number;
  if ((format & 0xe0) === 0xa0) {
    length = format & 0x1f;
    start = position + 1;
  } else if (format === 0xd9) {
    need(reader, position, 2, field);
    length = bytes[position + 1] as number;
    start = position + 2;
  } else if (format === 0xda) {
    need(reader, position, 3, field);
    length = uint16At(bytes, position + 1);
    start = position + 3;
  } else if (format === 0xdb) {
    need(reader, position, 5, field);
    length = uint32At(bytes, position + 1);
    start = position + 5;
  } else throw unexpected(reader, field, "str");
  need(reader, start, length, field);
  reader.position = start;
  return length;
}

/** Reads a string. */
export function readStr(reader: Reader, field: string): string {
  const length = readStrHeader(reader, field);
  const start = reader.position;
  const text = textAt(reader, start, start + length, field);
  reader.position = start + length;
  return text;
}

/** The text of a range of bytes, which must be valid UTF-8. */
export function textAt(reader: Reader, start: number, end: number, field: string): string {
  const { bytes } = reader;
  if (end - start <= scannedText) {
    let bits = 0;
    for (let i = start; i < end; i++) bits |= bytes[i] as number;
    if (bits < 0x80) {
      if (nativeText === null || end - start <= assembledText) return assemble(bytes, start, end);
      return nativeText.latin1Slice.call(bytes, start, end);
    }
  }
  if (nativeText === null) return strictTextAt(reader, start, end, field);
  const text = nativeText.utf8Slice.call(bytes, start, end);
  // Node puts U+FFFD for what is not UTF-8; the text may also contain one of its own.
  return text.includes("\ufffd") ? strictTextAt(reader, start, end, field) : text;
}

function strictTextAt(reader: Reader, start: number, end: number, field: string): string {
  try {
    return decoder.decode(reader.bytes.subarray(start, end));
  } catch {
    throw malformed(field, "valid UTF-8", "other bytes", start);
  }
}

/** A short ASCII text, four characters at a time, without leaving JavaScript. */
function assemble(bytes: Uint8Array, start: number, end: number): string {
  let text = "";
  let i = start;
  for (; i + 4 <= end; i += 4) {
    text += String.fromCharCode(bytes[i] as number, bytes[i + 1] as number, bytes[i + 2] as number, bytes[i + 3] as number);
  }
  for (; i < end; i++) text += String.fromCharCode(bytes[i] as number);
  return text;
}

let cache: string[] | undefined;

/**
 * Reads a string that is likely to come again, such as a key, a mode or a group name. Short ASCII ones are kept in 1024
 * places, each compared byte by byte before it is used, so the same text is one string and costs no decoding.
 */
export function readRepeatedStr(reader: Reader, field: string): string {
  const length = readStrHeader(reader, field);
  const { bytes, position } = reader;
  const end = position + length;
  if (length === 0 || length > cachedText) {
    const text = textAt(reader, position, end, field);
    reader.position = end;
    return text;
  }
  cache ??= new Array<string>(1024).fill("");
  const mixed = Math.imul((bytes[position] as number) ^ (length << 3), 31) + (bytes[end - 1] as number);
  const place = (mixed * 31 + (bytes[position + (length >> 1)] as number)) & 1023;
  const known = cache[place] as string;
  if (known.length === length) {
    let i = 0;
    while (i < length && known.charCodeAt(i) === bytes[position + i]) i++;
    if (i === length) {
      reader.position = end;
      return known;
    }
  }
  const text = textAt(reader, position, end, field);
  // As many characters as bytes: ASCII, which alone compares byte by byte.
  if (text.length === length) cache[place] = text;
  reader.position = end;
  return text;
}

/** Reads a request id: one string, or a list of them. */
export function readStrOrList(reader: Reader, field: string): string | string[] {
  const format = reader.bytes[reader.position] as number;
  if ((format & 0xe0) === 0xa0 || (format >= 0xd9 && format <= 0xdb)) return readStr(reader, field);
  if ((format & 0xf0) === 0x90 || format === 0xdc || format === 0xdd) return readStrItems(reader, readArrayHeader(reader, field), field);
  throw unexpected(reader, field, "str or array");
}

/** Reads so many strings one by one. */
export function readStrItems(reader: Reader, length: number, field: string): string[] {
  const list = new Array<string>(length);
  let i = 0;
  try {
    for (; i < length; i++) list[i] = readRepeatedStr(reader, "");
  } catch (error) {
    throw within(within(error, i), field);
  }
  return list;
}
