import { Ext, float } from "../../src/wire/index.ts";

/** A value in the vectors' notation (`README.md` beside the reference vectors). */
export type Noted = null | boolean | number | string | readonly Noted[] | { readonly [key: string]: Noted };

/** One entry of a vector file. */
export interface Vector {
  readonly name: string;
  readonly type: string;
  readonly reads: string;
  readonly frames: readonly string[];
  readonly value?: Noted;
  readonly canonical?: readonly string[] | null;
  readonly path?: string;
  readonly reason?: string;
  readonly why?: string;
  readonly advice?: string;
  readonly msgspec?: { readonly accept: boolean; readonly value?: Noted; readonly canonical?: readonly string[] };
  readonly crate?: { readonly accept: boolean };
}

/** Bytes from hexadecimal text. */
export function fromHex(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** Bytes as hexadecimal text. */
export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function isObject(value: Noted): value is { readonly [key: string]: Noted } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The key and the content of a tagged form such as `{"$int": "1"}`. */
function taggedForm(value: { readonly [key: string]: Noted }): readonly [string, Noted] | undefined {
  const keys = Object.keys(value);
  const [key] = keys;
  return keys.length === 1 && key?.startsWith("$") ? [key, value[key] as Noted] : undefined;
}

const isArrayIndex = (key: string): boolean => /^(0|[1-9]\d*)$/.test(key) && Number(key) < 2 ** 32 - 1;

function fromEntries(entries: readonly (readonly [unknown, unknown])[]): unknown {
  const plain = entries.every(([key]) => typeof key === "string" && key !== "__proto__" && !isArrayIndex(key));
  return plain ? Object.fromEntries(entries as readonly [string, unknown][]) : new Map(entries);
}

/**
 * What a noted value is in JavaScript. With `forEncoding`, integral floats are `float()`s, as an encoder needs them;
 * without, they are the numbers a decoder returns.
 */
export function fromNotation(value: Noted, forEncoding: boolean): unknown {
  if (Array.isArray(value)) return (value as readonly Noted[]).map((item) => fromNotation(item, forEncoding));
  if (!isObject(value)) return value;
  const form = taggedForm(value);
  if (form === undefined) return fromEntries(Object.entries(value).map(([key, item]) => [key, fromNotation(item, forEncoding)]));
  const [key, content] = form;
  switch (key) {
    case "$int":
      return BigInt(content as string);
    case "$float":
      return forEncoding ? float(Number(content)) : Number(content);
    case "$bytes":
      return fromHex(content as string);
    case "$ext": {
      const [type, data] = content as readonly [number, string];
      return new Ext(type, fromHex(data));
    }
    case "$map":
      return fromEntries(
        (content as readonly (readonly [Noted, Noted])[]).map(([entryKey, item]) => [
          fromNotation(entryKey, forEncoding),
          fromNotation(item, forEncoding),
        ]),
      );
    default:
      throw new Error(`unknown form ${key}`);
  }
}
