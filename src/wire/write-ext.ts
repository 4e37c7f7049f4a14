import { isBytes } from "./values.ts";
import { invalidValue } from "./write-values.ts";
import { reserve, type Writer } from "./writer.ts";

/** Writes an extension from its type, -128 to 127, and its data. */
export function writeExt(writer: Writer, type: unknown, data: unknown, field: string): void {
  if (typeof type !== "number" || !Number.isInteger(type) || type < -128 || type > 127) {
    throw invalidValue(field, "an extension type within -128 .. 127", type);
  }
  if (!isBytes(data)) throw invalidValue(field, "extension data as a Uint8Array", data);
  const { length } = data;
  reserve(writer, 6 + length);
  const { bytes, view } = writer;
  let { position } = writer;
  // 1, 2, 4, 8 and 16 bytes have formats of their own.
  if (length >= 1 && length <= 16 && (length & (length - 1)) === 0) bytes[position++] = 0xd4 + (31 - Math.clz32(length));
  else if (length < 0x100) {
    bytes[position++] = 0xc7;
    bytes[position++] = length;
  } else if (length < 0x10000) {
    bytes[position++] = 0xc8;
    view.setUint16(position, length);
    position += 2;
  } else {
    bytes[position++] = 0xc9;
    view.setUint32(position, length);
    position += 4;
  }
  bytes[position++] = type;
  bytes.set(data, position);
  writer.position = position + length;
}
