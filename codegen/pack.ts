import type { DefaultValue, WireType } from "../schema/dsl.ts";
import { quote } from "./names.ts";

/*
 * MessagePack for what generated code holds as constants: headers, tags, keys and defaults. One character stands for one
 * byte. This runs when code is generated, where the runtime's own encoder must not be needed.
 */

function bigEndian(value: bigint, length: number): string {
  let bytes = "";
  for (let i = length - 1; i >= 0; i--) bytes += String.fromCharCode(Number((value >> BigInt(8 * i)) & 0xffn));
  return bytes;
}

function header(length: number, fix: number, fixBelow: number, formats: readonly (readonly [format: number, bytes: number])[]): string {
  if (length < fixBelow) return String.fromCharCode(fix | length);
  for (const [format, bytes] of formats) {
    if (length < 2 ** (8 * bytes)) return String.fromCharCode(format) + bigEndian(BigInt(length), bytes);
  }
  throw new RangeError(`${length} elements`);
}

/** An array's header. */
export function packArrayHeader(length: number): string {
  return header(length, 0x90, 16, [
    [0xdc, 2],
    [0xdd, 4],
  ]);
}

/** A map's header. */
export function packMapHeader(length: number): string {
  return header(length, 0x80, 16, [
    [0xde, 2],
    [0xdf, 4],
  ]);
}

/** A string with its header. */
export function packStr(text: string): string {
  const utf8 = Buffer.from(text, "utf8").toString("latin1");
  const formats = [
    [0xd9, 1],
    [0xda, 2],
    [0xdb, 4],
  ] as const;
  return header(utf8.length, 0xa0, 32, formats) + utf8;
}

/** An integer in its smallest format. */
export function packInteger(value: bigint): string {
  if (value >= 0n) {
    if (value < 0x80n) return bigEndian(value, 1);
    for (const [format, bytes] of [
      [0xcc, 1],
      [0xcd, 2],
      [0xce, 4],
    ] as const) {
      if (value < 2n ** BigInt(8 * bytes)) return String.fromCharCode(format) + bigEndian(value, bytes);
    }
    return String.fromCharCode(0xcf) + bigEndian(value, 8);
  }
  if (value >= -32n) return bigEndian(value, 1);
  for (const [format, bytes] of [
    [0xd0, 1],
    [0xd1, 2],
    [0xd2, 4],
  ] as const) {
    if (value >= -(2n ** BigInt(8 * bytes - 1))) return String.fromCharCode(format) + bigEndian(value, bytes);
  }
  return String.fromCharCode(0xd3) + bigEndian(value, 8);
}

function packFloat(value: number): string {
  const bytes = Buffer.alloc(9, 0xcb);
  bytes.writeDoubleBE(value, 1);
  return bytes.toString("latin1");
}

/** A default of a type, as it goes on the wire. `check.ts` has made sure that it fits. */
export function packDefault(type: WireType, value: DefaultValue): string {
  if (type.kind === "nullable") return value === null ? "\xc0" : packDefault(type.inner, value);
  if (value === null) return "\xc0";
  if (typeof value === "boolean") return value ? "\xc3" : "\xc2";
  if (typeof value === "bigint") return packInteger(value);
  if (typeof value === "number") return type.kind === "f64" || !Number.isSafeInteger(value) ? packFloat(value) : packInteger(BigInt(value));
  if (typeof value === "string") return packStr(value);
  if (isList(value)) return packArrayHeader(value.length) + value.map((item, i) => packDefault(itemType(type, i), item)).join("");
  const entries = Object.entries(value);
  const valueType = type.kind === "map" ? type.value : anyType;
  return packMapHeader(entries.length) + entries.map(([key, item]) => packStr(key) + packDefault(valueType, item)).join("");
}

const anyType: WireType = { kind: "any" };

function isList(value: DefaultValue): value is readonly DefaultValue[] {
  return Array.isArray(value);
}

function itemType(type: WireType, index: number): WireType {
  if (type.kind === "list" || type.kind === "set") return type.item;
  return (type.kind === "tuple" ? type.items[index] : undefined) ?? anyType;
}

/** A default of a type, as an expression that makes a new value each time. */
export function defaultExpression(type: WireType, value: DefaultValue): string {
  if (type.kind === "nullable") return value === null ? "null" : defaultExpression(type.inner, value);
  if (type.kind === "u64") return `${BigInt(value as number | bigint)}n`;
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? String(value) : `${value}n`;
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  if (typeof value === "string") return quote(value);
  if (value === null || typeof value === "boolean") return String(value);
  if (isList(value)) return `[${value.map((item, i) => defaultExpression(itemType(type, i), item)).join(", ")}]`;
  const valueType = type.kind === "map" ? type.value : anyType;
  const entries = Object.entries(value).map(([key, item]) => `${quote(key)}: ${defaultExpression(valueType, item)}`);
  return entries.length === 0 ? "{}" : `{ ${entries.join(", ")} }`;
}
