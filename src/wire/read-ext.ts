import { need, uint16At, uint32At } from "./read-values.ts";
import type { Reader } from "./reader.ts";

/** What stands before an extension's data. */
export interface ExtHeader {
  readonly type: number;
  /** Length of the data in bytes; whether they are there is not checked. */
  readonly length: number;
}

/** Reads an extension's header and goes to its data; the caller has seen that an extension is next. */
export function readExtHeader(reader: Reader, field: string): ExtHeader {
  const { bytes, position } = reader;
  const format = bytes[position] as number;
  let length: number;
  let start: number;
  if (format >= 0xd4 && format <= 0xd8) {
    length = 1 << (format - 0xd4);
    start = position + 1;
  } else if (format === 0xc7) {
    need(reader, position, 2, field);
    length = bytes[position + 1] as number;
    start = position + 2;
  } else if (format === 0xc8) {
    need(reader, position, 3, field);
    length = uint16At(bytes, position + 1);
    start = position + 3;
  } else {
    need(reader, position, 5, field);
    length = uint32At(bytes, position + 1);
    start = position + 5;
  }
  need(reader, start, 1, field);
  reader.position = start + 1;
  return { type: ((bytes[start] as number) << 24) >> 24, length };
}
