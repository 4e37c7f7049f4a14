import type * as messages from "../../src/messages.ts";
import { fromNotation, type Noted, type Vector } from "./notation.ts";

/** The messages of this library, however they were loaded. */
export type Messages = typeof messages;

// The vectors have Python's name for the one field that is renamed here.
const propertyOf = (type: string, wireName: string): string => {
  if (type === "ProfileReq" && wireName === "type") return "kind";
  return wireName.replaceAll(/_+(.)/g, (_, letter: string) => letter.toUpperCase());
};

const handshake = new Set(["ReadyMessage", "HandshakeAddresses", "HandshakeInitMessage", "EngineCoreReadyResponse"]);

/** A vector's value as a struct of this library. Floats of typed fields are plain numbers; those inside `any` are as asked. */
export function structOf(type: string, value: Noted, forEncoding: boolean): { [property: string]: unknown } {
  const struct: { [property: string]: unknown } = handshake.has(type) ? {} : { $tag: type };
  for (const [wireName, item] of Object.entries(value as { readonly [key: string]: Noted })) {
    const typed = wireName === "kv_cache_max_concurrency";
    struct[propertyOf(type, wireName)] =
      wireName === "addresses" ? structOf("HandshakeAddresses", item, forEncoding) : fromNotation(item, forEncoding && !typed);
  }
  return struct;
}

/** Encodes a struct by its name. */
export function encodeStruct(library: Messages, type: string, init: unknown, maxDepth?: number): Uint8Array {
  const encode = library[`encode${type}` as keyof Messages] as unknown as (init: unknown, maxDepth?: number) => Uint8Array;
  return encode(init, maxDepth);
}

/** Decodes the bytes of a struct by its name. */
export function decodeStruct(library: Messages, type: string, bytes: Uint8Array, maxDepth?: number): unknown {
  const decode = library[`decode${type}` as keyof Messages] as unknown as (bytes: Uint8Array, maxDepth?: number) => unknown;
  return decode(bytes, maxDepth);
}

/** Decodes through the union that reads the vector's socket, or its struct where none does. */
export function decodeFromSocket(library: Messages, vector: Vector, bytes: Uint8Array, maxDepth?: number): unknown {
  switch (vector.reads) {
    case "engine-request":
      return library.decodeControlRequest(bytes, maxDepth);
    case "engine-output":
      return library.decodeControlOutput(bytes, maxDepth);
    default:
      return decodeStruct(library, vector.type, bytes, maxDepth);
  }
}

/** The frame that holds the message: a request's first one is its type. */
export function payloadOf(vector: Vector, frames: readonly string[] = vector.frames): string {
  return frames[vector.reads === "engine-request" ? 1 : 0] ?? "";
}
