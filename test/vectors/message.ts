import { allFields, allStructs, propertyOf } from "../../schema/derive.ts";
import type { StructDefinition, WireType } from "../../schema/dsl.ts";
import { tokenspeed } from "../../schema/tokenspeed/index.ts";
import type * as messages from "../../src/messages.ts";
import { fromHex, fromNotation, type Noted, type Vector } from "./notation.ts";

/** The messages of this library, however they were loaded. */
export type Messages = typeof messages;

const structs = new Map(allStructs(tokenspeed).map((struct) => [struct.name, struct]));
/** What the vectors call the one message that is no struct. */
const abort = "Abort";

/** The name of a vector's type in this library. */
export function nameOf(type: string): string {
  return type === abort ? "AbortRids" : type;
}

function typeOf(type: string): WireType {
  return tokenspeed.values?.find(({ name }) => name === nameOf(type))?.type ?? { kind: "struct", name: type };
}

// The vectors have Python's name for the one field that is renamed here.
function fieldsOf(struct: StructDefinition, value: Noted) {
  const noted = value as { readonly [key: string]: Noted };
  return allFields(struct).flatMap((field) => {
    const item = noted[field.python ?? field.name];
    return item === undefined ? [] : [{ property: propertyOf(field), type: field.type, item }];
  });
}

/** A vector's value as a message of this library. Floats of typed fields are plain numbers; those inside `any` are as asked. */
export function structOf(type: string, value: Noted, forEncoding: boolean): { [property: string]: unknown } {
  return valueOf(typeOf(type), value, forEncoding) as { [property: string]: unknown };
}

function valueOf(type: WireType, value: Noted, forEncoding: boolean): unknown {
  const of = (inner: WireType, item: Noted): unknown => valueOf(inner, item, forEncoding);
  switch (type.kind) {
    case "nullable":
      return value === null ? null : of(type.inner, value);
    case "list":
    case "set":
      return (value as readonly Noted[]).map((item) => of(type.item, item));
    case "tuple":
      return (value as readonly Noted[]).map((item, i) => of(type.items[i] as WireType, item));
    case "map": {
      const map = fromNotation(value, forEncoding);
      if (type.value.kind === "any") return map;
      if (map instanceof Map) return new Map([...map].map(([key]) => [key, of(type.value, entryOf(value, key as string))]));
      return Object.fromEntries(Object.keys(map as object).map((key) => [key, of(type.value, entryOf(value, key))]));
    }
    case "struct": {
      const struct = structs.get(type.name) as StructDefinition;
      const properties = fieldsOf(struct, value).map(({ property, type: inner, item }) => [property, of(inner, item)] as const);
      return Object.fromEntries([...(struct.tagged === true ? [["$tag", type.name] as const] : []), ...properties]);
    }
    case "u64":
      return BigInt(fromNotation(value, false) as number | bigint);
    case "any":
    case "dict":
      return fromNotation(value, forEncoding);
    default:
      return fromNotation(value, false);
  }
}

/** The noted value of a map's key. */
function entryOf(value: Noted, key: string): Noted {
  const noted = value as { readonly $map?: readonly (readonly [Noted, Noted])[]; readonly [key: string]: unknown };
  return (noted.$map?.find(([other]) => other === key)?.[1] ?? noted[key]) as Noted;
}

/** Whether a value has an integer field of 64 bits beyond the safe range, which this library refuses. */
export function hasUnsafeField(type: string, value: Noted): boolean {
  return isUnsafe(typeOf(type), value);
}

function isUnsafe(type: WireType, value: Noted): boolean {
  switch (type.kind) {
    case "nullable":
      return value !== null && isUnsafe(type.inner, value);
    case "list":
    case "set":
      return (value as readonly Noted[]).some((item) => isUnsafe(type.item, item));
    case "struct":
      return fieldsOf(structs.get(type.name) as StructDefinition, value).some((field) => isUnsafe(field.type, field.item));
    default:
      return type.kind === "i64" && typeof value === "object";
  }
}

/** Encodes a message by its name, to its frames. */
export function encodeFrames(library: Messages, type: string, init: unknown, maxDepth?: number): readonly Uint8Array[] {
  const encode = library[`encode${nameOf(type)}` as keyof Messages] as unknown as (init: unknown, maxDepth?: number) => unknown;
  const encoded = encode(init, maxDepth);
  return Array.isArray(encoded) ? encoded : [encoded as Uint8Array];
}

/** Messages that can have more than one frame. */
const framed = new Set(["TokenizedGenerateReqInput", "EncodeRequest", "MultimodalInputs", "MultimodalDataItem"]);

/** Decodes the frames of a message by its name. */
export function decodeFrames(library: Messages, type: string, frames: readonly Uint8Array[], maxDepth?: number): unknown {
  const decode = library[`decode${nameOf(type)}` as keyof Messages] as unknown as (input: unknown, maxDepth?: number) => unknown;
  return decode(framed.has(type) ? frames : frames[0], maxDepth);
}

/** Encodes a message that has one frame. */
export function encodeStruct(library: Messages, type: string, init: unknown, maxDepth?: number): Uint8Array {
  const [payload, ...aux] = encodeFrames(library, type, init, maxDepth);
  if (payload === undefined || aux.length > 0) throw new Error(`${type} has ${aux.length + 1} frames`);
  return payload;
}

/** Decodes a message that has one frame. */
export function decodeStruct(library: Messages, type: string, bytes: Uint8Array, maxDepth?: number): unknown {
  return decodeFrames(library, type, [bytes], maxDepth);
}

/** Decodes as who reads the vector's socket does, or by its type where nobody does. */
export function decodeFromSocket(library: Messages, vector: Vector, frames: readonly Uint8Array[], maxDepth?: number): unknown {
  const [payload = new Uint8Array()] = frames;
  const batch = "BatchTokenIDOutSlim";
  switch (vector.reads) {
    case "engine-request":
      if (vector.frames[0] === "00") return library.decodeTokenizedGenerateReqInput(frames, maxDepth);
      return vector.frames[0] === "01" ? library.decodeAbortRids(payload, maxDepth) : library.decodeControlRequest(payload, maxDepth);
    case "engine-output":
      if (library.peekTag(payload) === batch) return library.decodeBatchTokenIDOutSlim(payload, maxDepth);
      return library.decodeControlOutput(payload, maxDepth);
    default:
      return decodeFrames(library, vector.type, frames, maxDepth);
  }
}

/** The frames that hold the message: a request's first one is its type. */
export function framesOf(vector: Vector, frames: readonly string[] = vector.frames): Uint8Array[] {
  return frames.slice(vector.reads === "engine-request" ? 1 : 0).map(fromHex);
}
