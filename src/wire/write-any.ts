import { Failure, keyStep, within } from "./failure.ts";
import { isBytes, isExt, isFloat } from "./values.ts";
import { writeExt } from "./write-ext.ts";
import { writeBigInteger, writeSafeInteger } from "./write-integers.ts";
import { writeStr } from "./write-text.ts";
import { invalidValue, writeArrayHeader, writeBin, writeDouble, writeMapHeader, writeNil } from "./write-values.ts";
import { encodeWith, enterWriter, reserve, type Writer } from "./writer.ts";

/**
 * Encodes a value without a schema. Integral numbers become integers, unless they are beyond the safe range, where they
 * can only have come from floats; `float` forces a float. Everything that has no counterpart in MessagePack is refused.
 */
export function encodeAny(value: unknown, maxDepth?: number): Uint8Array<ArrayBuffer> {
  return encodeWith(writeAny, value, "", maxDepth);
}

/** Writes a value of any type. */
export function writeAny(writer: Writer, value: unknown, field: string): void {
  switch (typeof value) {
    case "string":
      writeStr(writer, value, field);
      return;
    case "number":
      reserve(writer, 9);
      if (Number.isSafeInteger(value) && !Object.is(value, -0)) writeSafeInteger(writer, value);
      else writeDouble(writer, value);
      return;
    case "boolean":
      reserve(writer, 1);
      writer.bytes[writer.position++] = value ? 0xc3 : 0xc2;
      return;
    case "bigint":
      reserve(writer, 9);
      if (!writeBigInteger(writer, value)) throw invalidValue(field, "an integer within -2^63 .. 2^64-1", value);
      return;
    case "object":
      if (value === null) writeNil(writer);
      else if (Array.isArray(value)) writeAnyList(writer, value, field);
      else writeObject(writer, value, field);
      return;
    default:
      throw invalidValue(field, "a value that MessagePack has", value);
  }
}

function writeAnyList(writer: Writer, list: readonly unknown[], field: string): void {
  enterWriter(writer, field);
  const { length } = list;
  writeArrayHeader(writer, length);
  let i = 0;
  try {
    for (; i < length; i++) writeAny(writer, list[i], "");
  } catch (error) {
    throw within(within(error, i), field);
  }
  writer.depth--;
}

function writeObject(writer: Writer, value: object, field: string): void {
  if (isPlain(value)) writePlainObject(writer, value, field, writeAny);
  else if (isBytes(value)) writeBin(writer, value, field);
  else if (isFloat(value)) {
    if (typeof value.value !== "number") throw invalidValue(field, "float() of a number", value.value);
    reserve(writer, 9);
    writeDouble(writer, value.value);
  } else if (isExt(value)) writeExt(writer, value.type, value.data, field);
  else if (isMap(value)) writeMapEntries(writer, value, field, writeAny, writeAny);
  else throw invalidValue(field, "null, a boolean, number, bigint, string, Uint8Array, array, plain object, Map, Ext or float()", value);
}

/** Whether an object is one of this or another realm's `{}` or has no prototype; instances of classes are not. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Whether a value is a `Map`, also one of another realm: only a real one answers to the getter of `size`. */
function isMap(value: object): value is ReadonlyMap<unknown, unknown> {
  try {
    Reflect.get(Map.prototype, "size", value);
    return true;
  } catch {
    return false;
  }
}

/** Writes one item of a map, as generated code does for the type of its values. */
export type WriteItem = (writer: Writer, value: unknown, field: string) => void;

/** Writes a `dict[str, T]` from a plain object or a Map with string keys. */
export function writeMap(writer: Writer, value: unknown, field: string, writeItem: WriteItem): void {
  writeAnyMap(writer, value, field, writeItem, writeStr);
}

/** Writes a `dict` whose keys may be of any type. */
export function writeDict(writer: Writer, value: unknown, field: string): void {
  writeAnyMap(writer, value, field, writeAny, writeAny);
}

function writeAnyMap(writer: Writer, value: unknown, field: string, writeItem: WriteItem, writeKey: WriteItem): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalidValue(field, "a plain object or a Map", value);
  if (isPlain(value)) writePlainObject(writer, value, field, writeItem);
  else if (isMap(value)) writeMapEntries(writer, value, field, writeItem, writeKey);
  else throw invalidValue(field, "a plain object or a Map", value);
}

function writePlainObject(writer: Writer, value: object, field: string, writeItem: WriteItem): void {
  const object = value as { readonly [key: string]: unknown };
  enterWriter(writer, field);
  const keys = Object.keys(object);
  const { length } = keys;
  writeMapHeader(writer, length);
  let key = "";
  let written = 0;
  try {
    // From the message's beginning: the block may move meanwhile.
    const start = writer.position - writer.start;
    for (let i = 0; i < length; i++) {
      key = keys[i] as string;
      const item = object[key];
      // A property that is undefined is one that is absent, as in JSON.
      if (item === undefined) continue;
      writeStr(writer, key, "");
      writeItem(writer, item, "");
      written++;
    }
    if (written !== length) shortenMap(writer, writer.start + start, length, written);
  } catch (error) {
    throw within(within(error, keyStep(key)), field);
  }
  writer.depth--;
}

function headerLength(length: number): number {
  return length < 16 ? 1 : length < 0x10000 ? 3 : 5;
}

// The number of entries is known only after every property has been read once, since a getter may answer undefined.
function shortenMap(writer: Writer, start: number, promised: number, written: number): void {
  const header = start - headerLength(promised);
  const to = header + headerLength(written);
  const end = writer.position;
  writer.bytes.copyWithin(to, start, end);
  writer.position = header;
  writeMapHeader(writer, written);
  writer.position = to + end - start;
}

function writeMapEntries(
  writer: Writer,
  map: ReadonlyMap<unknown, unknown>,
  field: string,
  writeItem: WriteItem,
  writeKey: WriteItem,
): void {
  enterWriter(writer, field);
  const { size } = map;
  writeMapHeader(writer, size);
  let key: unknown;
  let written = 0;
  try {
    for (const entry of map) {
      key = entry[0];
      writeKey(writer, key, "");
      writeItem(writer, entry[1], "");
      written++;
    }
  } catch (error) {
    throw within(within(error, keyStep(key)), field);
  }
  if (written !== size) throw new Failure("invalid_value", field, "a Map that stays as it is", "one that changed while it was encoded");
  writer.depth--;
}
