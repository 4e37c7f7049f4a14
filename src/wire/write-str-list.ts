import { nativeText } from "./native-text.ts";
import { putStrHeader, writeStrItems } from "./write-text.ts";
import { invalidValue, writeArrayHeader } from "./write-values.ts";
import { reserve, type Writer } from "./writer.ts";

/** Shorter lists, and lists of texts shorter than this on average, are as fast one by one. */
const bulkLength = 4;
const bulkAverage = 12;

const encoder = /* @__PURE__ */ new TextEncoder();

/**
 * Writes a list of strings. Long lists of ASCII texts, which parameter names are, go out in one native call instead of
 * one for each text; what is not ASCII goes the plain way.
 */
export function writeStrList(writer: Writer, value: unknown, field: string): void {
  if (!Array.isArray(value)) throw invalidValue(field, "an array of strings", value);
  const list: readonly unknown[] = value;
  const { length } = list;
  if (length >= bulkLength) {
    let total = 0;
    for (let i = 0; i < length; i++) {
      const item = list[i];
      if (typeof item !== "string") throw invalidValue(`${field}[${i}]`, "a string", item);
      total += item.length;
    }
    if (total >= bulkAverage * length) {
      if (nativeText === null ? writeJoined(writer, list, total) : writeConcatenated(writer, list)) return;
    }
  }
  writeStrItems(writer, list, field);
}

// Headers as characters, so that a whole list becomes one string of bytes.
const headers: readonly string[] = /* @__PURE__ */ Array.from({ length: 0x100 }, (_, length) =>
  length < 32 ? String.fromCharCode(0xa0 | length) : `\xd9${String.fromCharCode(length)}`,
);

/**
 * One string of all headers and texts, copied with one byte for each character. Its length in UTF-8 proves that the
 * texts are ASCII: a header's characters above 0x7f count twice, and any excess beyond those is text that is not.
 */
function writeConcatenated(writer: Writer, list: readonly unknown[]): boolean {
  const native = nativeText;
  if (native === null) return false;
  const count = list.length;
  let all = "";
  let high = 0;
  for (let i = 0; i < count; i++) {
    const item = list[i];
    // Read a second time: only an array that runs code could have changed, and then the plain way reports it.
    if (typeof item !== "string") return false;
    const { length } = item;
    if (length > 0xff) return false;
    high += length < 0x80 ? 1 : 2;
    all += headers[length];
    if (length !== 0) all += item;
  }
  const { length } = all;
  if (native.byteLength(all) !== length + high) return false;
  writeArrayHeader(writer, count);
  reserve(writer, length);
  native.latin1Write.call(writer.bytes, all, writer.position, length);
  writer.position += length;
  return true;
}

/** All texts encoded at once behind their place, then each moved behind its header. */
function writeJoined(writer: Writer, list: readonly unknown[], total: number): boolean {
  const count = list.length;
  const joined = list.join("");
  if (joined.length !== total) return false;
  reserve(writer, 5 + 5 * count + 4 * total);
  let source = writer.position + 5 + 5 * count + total;
  // Up to three bytes for each character fit; ASCII takes one.
  if (encoder.encodeInto(joined, writer.bytes.subarray(source, source + 3 * total)).written !== total) return false;
  const begin = writer.position;
  const end = source + total;
  writeArrayHeader(writer, count);
  const { bytes, view } = writer;
  let { position } = writer;
  for (let i = 0; i < count; i++) {
    const item = list[i];
    if (typeof item !== "string" || source + item.length > end) {
      writer.position = begin;
      return false;
    }
    const { length } = item;
    position = putStrHeader(bytes, position, length);
    let moved = 0;
    for (; moved + 4 <= length; moved += 4) view.setInt32(position + moved, view.getInt32(source + moved));
    for (; moved < length; moved++) bytes[position + moved] = bytes[source + moved] as number;
    position += length;
    source += length;
  }
  if (source !== end) {
    writer.position = begin;
    return false;
  }
  writer.position = position;
  return true;
}
