import { Failure, kindOf } from "./failure.ts";
import type { Head } from "./head.ts";
import { defaultMaxDepth } from "./limits.ts";
import { readRepeatedStr } from "./read-text.ts";
import { int32At, readArrayHeader } from "./read-values.ts";
import { Reader } from "./reader.ts";
import { isBytes } from "./values.ts";

/** A message whose tag is not the struct's, or not one of the union's. */
export function unknownTag(field: string, expected: string, tag: string, offset: number): Failure {
  return new Failure("unknown_tag", field, expected, kindOf(tag), offset);
}

/**
 * Reads the header and the tag of one struct and returns how many elements follow. `head` is what a peer of the same
 * version writes; other widths and lengths are read the long way.
 */
export function readHead(reader: Reader, field: string, head: Head, elements: number, tag: string): number {
  const { bytes, position } = reader;
  const { words, length, last } = head;
  if (length >= 4 && position + length <= reader.end && int32At(bytes, position + length - 4) === last) {
    // The last word may be filled up; `last` has covered it.
    const whole = length >> 2;
    let i = 0;
    while (i < whole && int32At(bytes, position + 4 * i) === words[i]) i++;
    if (i === whole) {
      reader.position = position + length;
      return elements;
    }
  }
  const count = readArrayHeader(reader, field) - 1;
  const at = reader.position;
  const found = readTag(reader, field, count);
  if (found !== tag) throw unknownTag(field, `the tag ${tag}`, found, at);
  return count;
}

/** Reads the tag of a message whose header said that so many elements follow the tag. */
export function readTag(reader: Reader, field: string, count: number): string {
  if (count < 0) throw new Failure("malformed", field, "a tag", "an empty array", reader.position);
  return readRepeatedStr(reader, field);
}

/** The tag of a message, or undefined where it has none that can be read. Never throws. */
export function peekTag(bytes: Uint8Array): string | undefined {
  if (!isBytes(bytes)) return undefined;
  try {
    const reader = new Reader(bytes, defaultMaxDepth);
    return readTag(reader, "", readArrayHeader(reader, "") - 1);
  } catch {
    return undefined;
  }
}
