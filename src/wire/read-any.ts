import { keyStep, within } from "./failure.ts";
import { readExtHeader } from "./read-ext.ts";
import { readFloat, readInteger } from "./read-numbers.ts";
import { readRepeatedStr, readStr } from "./read-text.ts";
import { newList, readArrayHeader, readBin, readCopy, readMapHeader } from "./read-values.ts";
import { decodeWith, enterReader, formatName, malformed, type Reader, unexpected } from "./reader.ts";
import { type DynamicMap, Ext } from "./values.ts";

/**
 * Decodes a value without a schema. Integers are numbers where those are exact and bigints elsewhere, extensions are
 * `Ext`, and maps are plain objects or `Map`s (see `DynamicMap`).
 */
export function decodeAny(bytes: Uint8Array, maxDepth?: number): unknown {
  return decodeWith(readAny, bytes, "", maxDepth);
}

/** Reads a value of any type. */
export function readAny(reader: Reader, field: string): unknown {
  const { bytes, position } = reader;
  const format = bytes[position];
  if (format === undefined) throw unexpected(reader, field, "a value");
  if (format < 0x80) {
    reader.position = position + 1;
    return format;
  }
  if (format < 0x90) return readAnyMap(reader, field, readAny, readKey);
  if (format < 0xa0) return readAnyList(reader, field);
  if (format < 0xc0) return readRepeatedStr(reader, field);
  if (format >= 0xe0) {
    reader.position = position + 1;
    return format - 0x100;
  }
  switch (format) {
    case 0xc0:
      reader.position = position + 1;
      return null;
    case 0xc2:
    case 0xc3:
      reader.position = position + 1;
      return format === 0xc3;
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return readBin(reader, field);
    case 0xca:
    case 0xcb:
      return readFloat(reader, field);
    case 0xd9:
    case 0xda:
    case 0xdb:
      return readStr(reader, field);
    case 0xdc:
    case 0xdd:
      return readAnyList(reader, field);
    case 0xde:
    case 0xdf:
      return readAnyMap(reader, field, readAny, readKey);
    case 0xc1:
      throw malformed(field, "a value", "the reserved byte c1", position);
    default:
      return formatName(format) === "ext" ? readExt(reader, field) : readInteger(reader, field);
  }
}

function readAnyList(reader: Reader, field: string): unknown[] {
  enterReader(reader, field);
  const length = readArrayHeader(reader, field);
  let i = 0;
  try {
    const list = newList<unknown>(length);
    for (; i < length; i++) list[i] = readAny(reader, "");
    reader.depth--;
    return list;
  } catch (error) {
    throw within(within(error, i), field);
  }
}

function readExt(reader: Reader, field: string): Ext {
  const { type, length } = readExtHeader(reader, field);
  return new Ext(type, readCopy(reader, field, reader.position, length));
}

/** Reads one item of a map, as generated code does for the type of its values. */
export type ReadItem<Value> = (reader: Reader, field: string) => Value;

/** Reads a `dict[str, T]`. */
export function readMap<Value>(reader: Reader, field: string, readItem: ReadItem<Value>): DynamicMap<string, Value> {
  return readAnyMap(reader, field, readItem, readRepeatedStr);
}

/** Reads a `dict` whose keys may be of any type. */
export function readDict(reader: Reader, field: string): DynamicMap<unknown, unknown> {
  return readAnyMap(reader, field, readAny, readKey);
}

function readKey(reader: Reader, field: string): unknown {
  const format = reader.bytes[reader.position] as number;
  return (format & 0xe0) === 0xa0 || format === 0xd9 ? readRepeatedStr(reader, field) : readAny(reader, field);
}

function readAnyMap<Key, Value>(
  reader: Reader,
  field: string,
  readItem: ReadItem<Value>,
  readMapKey: ReadItem<Key>,
): DynamicMap<Key, Value> {
  enterReader(reader, field);
  const length = readMapHeader(reader, field);
  // Of the value that is being read; none while a key is.
  let key: Key | undefined;
  try {
    const object: { [key: string]: Value } = {};
    for (let i = 0; i < length; i++) {
      key = undefined;
      key = readMapKey(reader, "");
      if (typeof key !== "string" || !isOrdered(key)) return readRest(reader, object, key, length - i, readItem, readMapKey);
      object[key] = readItem(reader, "");
    }
    reader.depth--;
    return object;
  } catch (error) {
    throw within(key === undefined ? error : within(error, keyStep(key)), field);
  }
}

/**
 * Whether a plain object holds a key like any other, at its place: array indexes come first in JavaScript, whatever the
 * order they were added in, and `__proto__` sets the prototype.
 */
function isOrdered(key: string): boolean {
  const first = key.charCodeAt(0);
  if (first === 0x5f) return key !== "__proto__";
  if (!(first >= 0x30 && first <= 0x39) || key.length > 10) return true;
  const index = Number(key);
  return !Number.isInteger(index) || index > 4294967294 || String(index) !== key;
}

// The rest of a map that turned out not to fit a plain object, from the value of its first such key on.
function readRest<Key, Value>(
  reader: Reader,
  before: { readonly [key: string]: Value },
  first: Key,
  length: number,
  readItem: ReadItem<Value>,
  readMapKey: ReadItem<Key>,
): Map<Key, Value> {
  // the keys so far were strings, whatever further ones are
  const map = new Map<Key, Value>(Object.entries(before) as unknown as [Key, Value][]);
  let key: Key | undefined = first;
  try {
    map.set(key, readItem(reader, ""));
    for (let i = 1; i < length; i++) {
      key = undefined;
      key = readMapKey(reader, "");
      map.set(key, readItem(reader, ""));
    }
  } catch (error) {
    throw key === undefined ? error : within(error, keyStep(key));
  }
  reader.depth--;
  return map;
}
