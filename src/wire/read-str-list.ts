import { within } from "./failure.ts";
import { nativeText } from "./native-text.ts";
import { readStrHeader, readStrItems, textAt } from "./read-text.ts";
import { readArrayHeader } from "./read-values.ts";
import { type Reader, truncated } from "./reader.ts";

/** Shorter lists are read one by one. */
const bulkLength = 8;

/** One character for each byte (those of 0x80 to 0x9f are others than Node's, and belong to headers only). */
const byteDecoder = /* @__PURE__ */ new TextDecoder("latin1");

/** Where each text begins, and its length or `sameAsBefore`. */
let places = /* @__PURE__ */ new Int32Array(0);
const sameAsBefore = -1;

/**
 * Reads a list of strings. A first pass finds where each text is and whether all are ASCII; if so, one native call
 * decodes the whole list and the texts are cut out of the result. dtype names repeat, so equal neighbours share a string.
 *
 * A text that was cut out keeps the whole decoded list alive; copy the few that are kept for long.
 */
export function readStrList(reader: Reader, field: string): string[] {
  const length = readArrayHeader(reader, field);
  if (length < bulkLength) return readStrItems(reader, length, field);
  const { bytes } = reader;
  const view = reader.dataView();
  if (places.length < 2 * length) places = new Int32Array(3 * length);
  const found = places;
  const start = reader.position;
  let position = start;
  let bits = 0;
  let distinct = 0;
  let before = 0;
  let beforeLength = -1;
  for (let i = 0; i < length; i++) {
    const format = bytes[position] as number;
    let size = format & 0x1f;
    position++;
    if ((format & 0xe0) !== 0xa0) {
      size = format === 0xd9 ? (bytes[position++] as number) : readItemHeader(reader, position - 1, i, field);
      if (format !== 0xd9) position = reader.position;
    }
    const stop = position + size;
    // Also where the length itself is missing, and `stop` therefore not a number.
    if (!(stop <= reader.end)) throw within(within(truncated(reader, ""), i), field);
    found[2 * i] = position;
    if (size === beforeLength && isSame(view, bytes, position, before, size)) {
      found[2 * i + 1] = sameAsBefore;
      position = stop;
      continue;
    }
    found[2 * i + 1] = size;
    if (size !== 0) {
      distinct++;
      before = position;
      beforeLength = size;
    }
    for (; position + 4 <= stop; position += 4) bits |= view.getInt32(position);
    for (; position < stop; position++) bits |= bytes[position] as number;
  }
  reader.position = position;
  // Many equal texts and few others: decoding those few alone is cheaper.
  const apart = (bits & 0x80808080) !== 0 || distinct * 8 < length;
  return apart ? decodeApart(reader, found, length, field) : cutOut(reader, found, length, start);
}

// Headers of 16 or 32 bits, and what is not a string.
function readItemHeader(reader: Reader, position: number, index: number, field: string): number {
  reader.position = position;
  try {
    return readStrHeader(reader, "");
  } catch (error) {
    throw within(within(error, index), field);
  }
}

function isSame(view: DataView, bytes: Uint8Array, one: number, other: number, length: number): boolean {
  let i = 0;
  for (; i + 4 <= length; i += 4) if (view.getInt32(one + i) !== view.getInt32(other + i)) return false;
  for (; i < length; i++) if (bytes[one + i] !== bytes[other + i]) return false;
  return true;
}

function decodeApart(reader: Reader, found: Int32Array, length: number, field: string): string[] {
  const list = new Array<string>(length);
  let last = "";
  let i = 0;
  try {
    for (; i < length; i++) {
      const at = found[2 * i] as number;
      const size = found[2 * i + 1] as number;
      if (size > 0) last = textAt(reader, at, at + size, "");
      list[i] = size === 0 ? "" : last;
    }
  } catch (error) {
    throw within(within(error, i), field);
  }
  return list;
}

function cutOut(reader: Reader, found: Int32Array, length: number, start: number): string[] {
  const { bytes, position } = reader;
  const whole =
    nativeText === null ? byteDecoder.decode(bytes.subarray(start, position)) : nativeText.latin1Slice.call(bytes, start, position);
  const list = new Array<string>(length);
  let last = "";
  for (let i = 0; i < length; i++) {
    const at = (found[2 * i] as number) - start;
    const size = found[2 * i + 1] as number;
    if (size > 0) last = whole.slice(at, at + size);
    list[i] = size === 0 ? "" : last;
  }
  return list;
}
