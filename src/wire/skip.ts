import { readStr } from "./read-text.ts";
import { need, readArrayHeader, readMapHeader, uint16At, uint32At } from "./read-values.ts";
import { formatName, type Reader, unexpected } from "./reader.ts";

/**
 * Skips values that this version of a struct does not know, of any type and any depth: it counts what is still to come
 * instead of calling itself. Text is checked to be UTF-8 like any other.
 */
export function skipValues(reader: Reader, count: number, field: string): void {
  let left = count;
  while (left > 0) {
    left--;
    const { bytes, position } = reader;
    const format = bytes[position];
    if (format === undefined || format === 0xc1) throw unexpected(reader, field, "a value");
    switch (formatName(format)) {
      case "array":
        left += readArrayHeader(reader, field);
        break;
      case "map":
        left += 2 * readMapHeader(reader, field);
        break;
      case "str":
        readStr(reader, field);
        break;
      default: {
        const length = scalarLength(reader, format, field);
        need(reader, position, length, field);
        reader.position = position + length;
      }
    }
  }
}

/** Length of a value that is neither text nor a container, its format byte included. */
function scalarLength(reader: Reader, format: number, field: string): number {
  const { bytes, position } = reader;
  switch (format) {
    case 0xc4:
    case 0xc7:
      need(reader, position, 2, field);
      return (format === 0xc4 ? 2 : 3) + (bytes[position + 1] as number);
    case 0xc5:
    case 0xc8:
      need(reader, position, 3, field);
      return (format === 0xc5 ? 3 : 4) + uint16At(bytes, position + 1);
    case 0xc6:
    case 0xc9:
      need(reader, position, 5, field);
      return (format === 0xc6 ? 5 : 6) + uint32At(bytes, position + 1);
    case 0xca:
    case 0xce:
    case 0xd2:
      return 5;
    case 0xcb:
    case 0xcf:
    case 0xd3:
      return 9;
    case 0xcc:
    case 0xd0:
      return 2;
    case 0xcd:
    case 0xd1:
      return 3;
  }
  if (format >= 0xd4 && format <= 0xd8) return 2 + (1 << (format - 0xd4));
  return 1;
}
