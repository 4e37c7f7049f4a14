import type * as messages from "../../src/messages.ts";
import { fromNotation, type Noted, type Vector } from "./notation.ts";

type Messages = typeof messages;

/** Struct names by wire field name: the properties that differ from the camel-cased name, and the renamed field. */
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

/** The frame that holds the message: the second one of a request, the first of anything else. */
export function payloadIndex(vector: Vector): number {
  return /Req(Input)?$/.test(vector.type) ? 1 : 0;
}
