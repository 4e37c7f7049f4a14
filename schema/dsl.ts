/**
 * The constructors a schema is written with. They only build plain data: what a legal schema is stands in `check.ts`,
 * and what is derived from one in `../codegen`.
 */

import type { Release } from "./release.ts";

/** A value JSON could hold, plus bigint: what a default or a constant may be. */
export type DefaultValue = null | boolean | number | bigint | string | readonly DefaultValue[] | { readonly [key: string]: DefaultValue };

/** The scalar wire types. Integers name their range, as the Rust crate narrows them. */
export type ScalarKind = "bool" | "i32" | "u16" | "u32" | "i64" | "u64" | "f64" | "str" | "bytes" | "tensor" | "any" | "dict";

/** A field's type on the wire. */
export type WireType =
  | { readonly kind: ScalarKind }
  | { readonly kind: "list" | "set"; readonly item: WireType }
  | { readonly kind: "tuple"; readonly items: readonly WireType[] }
  | { readonly kind: "map"; readonly value: WireType }
  | { readonly kind: "nullable"; readonly inner: WireType }
  | { readonly kind: "literal"; readonly values: readonly (string | number)[] }
  | { readonly kind: "strOrList" }
  | { readonly kind: "struct"; readonly name: string };

/** `true` or `false`. */
export const bool: WireType = { kind: "bool" };
/** An integer in -2^31 .. 2^31-1. */
export const i32: WireType = { kind: "i32" };
/** An integer in 0 .. 2^16-1. */
export const u16: WireType = { kind: "u16" };
/** An integer in 0 .. 2^32-1. */
export const u32: WireType = { kind: "u32" };
/** A 64-bit signed integer; a `number` in TypeScript, refused beyond the safe range. */
export const i64: WireType = { kind: "i64" };
/** A 64-bit unsigned integer; a `bigint` in TypeScript. */
export const u64: WireType = { kind: "u64" };
/** A double; always written as float64, read from any number. */
export const f64: WireType = { kind: "f64" };
/** Text, UTF-8 on the wire. */
export const str: WireType = { kind: "str" };
/** Bytes (`bin` on the wire). */
export const bytes: WireType = { kind: "bytes" };
/**
 * A tensor: its dtype as torch names it, its shape, and its bytes in C order. They are inline below 256 bytes, else a frame
 * of their own behind the payload, so that a struct which can hold one is encoded to frames.
 */
export const tensor: WireType = { kind: "tensor" };
/** Any MessagePack value. */
export const any: WireType = { kind: "any" };
/** A map with keys and values of any type, as Python's bare `dict`; `map(any)` is `dict[str, Any]`. */
export const dict: WireType = { kind: "dict" };
/** `str | list[str]`, as Python spells a request id that may be a batch. */
export const strOrList: WireType = { kind: "strOrList" };

/** A list of one type. */
export function list(item: WireType): WireType {
  return { kind: "list", item };
}

/** A set in Python: an array on the wire, in any order. Here it is a list, whose order and repetitions are kept. */
export function set(item: WireType): WireType {
  return { kind: "set", item };
}

/** A tuple of a fixed length, an array on the wire. */
export function tuple(...items: WireType[]): WireType {
  return { kind: "tuple", items };
}

/** A map with string keys, as `dict[str, T]`. */
export function map(value: WireType): WireType {
  return { kind: "map", value };
}

/** The type or nil. */
export function nullable(inner: WireType): WireType {
  return { kind: "nullable", inner };
}

/** One of a few strings or integers (a Python `Literal`, or an enum by value). */
export function literal(...values: (string | number)[]): WireType {
  return { kind: "literal", values };
}

/** A struct of this schema, by its definition or by its name (a name may refer to the struct being defined). */
export function ref(struct: StructDefinition | string): WireType {
  return { kind: "struct", name: typeof struct === "string" ? struct : struct.name };
}

/** Stands where only a person can decide. A schema that still holds one is refused with its question. */
export function decide(question: string): never {
  return { decide: question } as never;
}

/** What a field's definition says besides its name and type. */
export interface FieldOptions {
  /** One sentence for a reader, with the unit where there is one. */
  readonly doc: string;
  /** The value a missing field takes; absent means that the field is required. */
  readonly default?: DefaultValue;
  /** The TypeScript property, where the camel-cased wire name would be reserved or taken. */
  readonly property?: string;
  /** The name in the engine's Python source, where it differs. */
  readonly python?: string;
  /** A name that older peers use for this key (map layout only). */
  readonly alias?: string;
}

/** A field of a struct. */
export interface FieldDefinition extends FieldOptions {
  /** The exact name on the wire. */
  readonly name: string;
  /** The wire type. */
  readonly type: WireType;
}

/** Describes a field. Its position in `fields` is its position on the wire. */
export function field(name: string, type: WireType, options: FieldOptions): FieldDefinition {
  return { name, type, ...options };
}

/** How a struct is laid out: positional, or a map with string keys. */
export type Layout = "array" | "map";

/** What a struct's definition says besides its name. */
export interface StructOptions {
  /** One sentence for a reader. */
  readonly doc: string;
  /** Positional (`array_like=True`) or keyed. */
  readonly layout: Layout;
  /** Whether the first array element is the struct's name. */
  readonly tagged?: boolean;
  /** Fields that come first, in the order of inheritance. */
  readonly extends?: FieldBase;
  /** The class in the engine's Python source, where its name differs; only without a tag, which is that name. */
  readonly python?: string;
  /** What defines it, where that is not `io_struct.py`: another file of the engine, or a sentence's end on where it comes from. */
  readonly definedIn?: string;
  /** Own fields in wire order. */
  readonly fields: readonly FieldDefinition[];
}

/** A struct of the wire. */
export interface StructDefinition extends StructOptions {
  /** The class name: the tag of a tagged struct, and the TypeScript type. */
  readonly name: string;
}

/** Describes a struct. */
export function struct(name: string, options: StructOptions): StructDefinition {
  return { name, ...options };
}

/** Fields that several structs begin with. */
export interface FieldBase {
  /** The Python base class. */
  readonly name: string;
  /** One sentence for a reader. */
  readonly doc: string;
  /** The fields, first on the wire. */
  readonly fields: readonly FieldDefinition[];
}

/** Describes base fields. */
export function base(name: string, options: Omit<FieldBase, "name">): FieldBase {
  return { name, ...options };
}

/** What an operation acts on: decides who may call it and what it excludes. */
export type Effect = "read" | "admission" | "memory" | "weights" | "profile";

/**
 * When an engine answers. `at once`: in the round the request arrives in. `drained`: when no request is left running.
 * `gated`: when every engine of the group holds the same operation at the head of its queue.
 */
export type Answers = "at once" | "drained" | "gated";

/** What about a value can be refused; `other` is the wire name of another field, `items` are those of a list. */
export type RefusedWhen =
  | { readonly when: "empty" }
  | { readonly when: "an item is empty" }
  | { readonly when: "an item is not one of"; readonly values: readonly string[] }
  | { readonly when: "below"; readonly limit: number }
  | { readonly when: "above"; readonly limit: number }
  | { readonly when: "an item is below"; readonly limit: number }
  | { readonly when: "not below"; readonly other: string }
  | { readonly when: "of another length than"; readonly other: string }
  | { readonly when: "set without"; readonly other: string };

/** A value that the engine accepts, or answers in a way nobody can use, and that so never leaves. */
export type RefusedValue = RefusedWhen & {
  /** Wire name of the field. */
  readonly field: string;
  /** What the engine would do, and what to send instead; ends a sentence. */
  readonly because: string;
};

/** An operation in the second control dialect, `[call_id, method, args]`. */
export interface SlimMethod {
  /** The method. */
  readonly method: string;
  /** Keys of its arguments that differ from wire names. */
  readonly rename?: Readonly<Record<string, string>>;
  /** The field that chooses between this method and another one that takes no arguments; it is not an argument itself. */
  readonly choice?: { readonly field: string; readonly otherwise: string; readonly value: number };
}

/** What an operation's definition says besides its name. */
export interface OperationOptions {
  /** The request. */
  readonly request: StructDefinition;
  /** The reply each engine gives. */
  readonly reply: StructDefinition;
  /** What it acts on. */
  readonly effect: Effect;
  /** When it is answered. */
  readonly answers: Answers;
  /** How long a call waits by default, in milliseconds. */
  readonly timeoutMs: number;
  /** Whether sending it again after an unknown outcome does no harm. */
  readonly repeatable: boolean;
  /** The first engine release that answers it over this wire. */
  readonly since: string;
  /** A few words for help texts. */
  readonly summary: string;
  /** Sentences on behaviour, for documentation. */
  readonly doc: string;
  /** Values that must not be sent. */
  readonly refuses?: readonly RefusedValue[];
  /** How the second control dialect says it; absent means that it cannot. */
  readonly slim?: SlimMethod;
  /** Whether it ends a pause or a release that does not drain, so that it must not wait for one. Default false. */
  readonly endsDrain?: boolean;
  /** Whether an engine unpickles bytes of the request, so that whoever may send them may run code there. Default false. */
  readonly unpickles?: true;
}

/** A control operation. */
export interface OperationDefinition extends OperationOptions {
  /** The client's method. */
  readonly name: string;
}

/** Describes an operation. */
export function operation(name: string, options: OperationOptions): OperationDefinition {
  return { name, ...options };
}

/** A message that is no struct: a value of some type, without a tag. */
export interface ValueDefinition {
  /** The exported type. */
  readonly name: string;
  /** What it is on the wire. */
  readonly type: WireType;
  /** One sentence for a reader. */
  readonly doc: string;
}

/** Describes a message that is no struct, such as a bare list. */
export function value(name: string, type: WireType, doc: string): ValueDefinition {
  return { name, type, doc };
}

/** A named number of the protocol. */
export interface ConstantDefinition {
  /** The exported name. */
  readonly name: string;
  /** Its value. */
  readonly value: number | string;
  /** One sentence for a reader. */
  readonly doc: string;
}

/** Describes a constant. */
export function constant(name: string, value: number | string, doc: string): ConstantDefinition {
  return { name, value, doc };
}

/** Tagged structs that share a socket and are told apart by their tag. */
export interface UnionDefinition {
  /** The exported type. */
  readonly name: string;
  /** One sentence for a reader. */
  readonly doc: string;
  /** The members; `requests` and `replies` are those of all operations. */
  readonly members: "requests" | "replies" | readonly StructDefinition[];
}

/** Describes a union of tagged structs. */
export function union(name: string, options: Omit<UnionDefinition, "name">): UnionDefinition {
  return { name, ...options };
}

/** A file of generated code. */
export type GeneratedFile = "types.ts" | "encoders.ts" | "decoders.ts" | "replies.ts" | "operations.ts" | "zod.ts";

/** Everything one protocol says. */
export interface ProtocolDefinition {
  /** Folder of the generated code. */
  readonly name: string;
  /** The engine release described. */
  readonly release: string;
  /** One sentence for a reader. */
  readonly doc: string;
  /** All structs besides those of operations, which are found by themselves. */
  readonly structs: readonly StructDefinition[];
  /** Messages that are no structs. */
  readonly values?: readonly ValueDefinition[];
  /** The operations in the order of documentation. */
  readonly operations: readonly OperationDefinition[];
  /** The unions. */
  readonly unions: readonly UnionDefinition[];
  /** The constants. */
  readonly constants: readonly ConstantDefinition[];
  /** Classes of the engine's source that this schema leaves out: not on this wire, or not described yet. */
  readonly leavesOut?: readonly string[];
  /** What releases of the engine had; requests of theirs may lack fields. */
  readonly releases?: readonly Release[];
  /** The files to generate, where they are not all: a protocol without operations has little to say in some. */
  readonly files?: readonly GeneratedFile[];
}

/** Describes a protocol. */
export function protocol(name: string, options: Omit<ProtocolDefinition, "name">): ProtocolDefinition {
  return { name, ...options };
}
