/**
 * Node's own string methods, where they exist: several times faster than `TextEncoder` and `TextDecoder` on the short
 * strings that messages are made of. They are found at run time, so that this folder stays free of Node's types and
 * works unchanged in browsers.
 */
export interface NativeText {
  /** Writes UTF-8 at an offset, at most `length` bytes, and returns how many. Replaces lone surrogates. */
  readonly utf8Write: (this: Uint8Array, text: string, offset: number, length: number) => number;
  /** Writes one byte for each character. */
  readonly latin1Write: (this: Uint8Array, text: string, offset: number, length: number) => number;
  /** Reads UTF-8; replaces what is not valid. */
  readonly utf8Slice: (this: Uint8Array, start: number, end: number) => string;
  /** Reads one character for each byte. */
  readonly latin1Slice: (this: Uint8Array, start: number, end: number) => string;
  /** Length of a string in UTF-8. */
  readonly byteLength: (text: string) => number;
}

interface NodeGlobals {
  readonly process?: { readonly versions?: { readonly node?: unknown } };
  readonly Buffer?: { readonly byteLength: NativeText["byteLength"]; readonly prototype: Omit<NativeText, "byteLength"> };
}

// Bundlers put a Buffer written in JavaScript into browsers; it has the same methods and none of their speed.
function findNativeText(): NativeText | null {
  const { process, Buffer } = globalThis as NodeGlobals;
  if (typeof process?.versions?.node !== "string" || typeof Buffer?.byteLength !== "function") return null;
  const { utf8Write, latin1Write, utf8Slice, latin1Slice } = Buffer.prototype;
  if (![utf8Write, latin1Write, utf8Slice, latin1Slice].every((method) => typeof method === "function")) return null;
  return { utf8Write, latin1Write, utf8Slice, latin1Slice, byteLength: Buffer.byteLength };
}

/** Node's string methods, or null everywhere else. */
export const nativeText: NativeText | null = /* @__PURE__ */ findNativeText();
