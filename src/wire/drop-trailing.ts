import { defaultMaxDepth } from "./limits.ts";
import { readArrayHeader } from "./read-values.ts";
import { Reader } from "./reader.ts";
import { skipValues } from "./skip.ts";
import { writeArrayHeader } from "./write-values.ts";
import { encodeWith } from "./writer.ts";

/** An encoded array without its last `count` elements, for a reader of a release that does not know them. */
export function dropTrailing(encoded: Uint8Array, count: number): Uint8Array {
  const reader = new Reader(encoded, defaultMaxDepth);
  const length = readArrayHeader(reader, "");
  const start = reader.position;
  skipValues(reader, length - count, "");
  const header = encodeWith(writeArrayHeader, length - count, "");
  const shorter = new Uint8Array(header.length + reader.position - start);
  shorter.set(header);
  shorter.set(encoded.subarray(start, reader.position), header.length);
  return shorter;
}
