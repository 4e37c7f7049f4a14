import { createHash } from "node:crypto";
import { allFields, allStructs, framedStructs, membersOf, propertyOf } from "../schema/derive.ts";
import type {
  ConstantDefinition,
  DefaultValue,
  GeneratedFile,
  Layout,
  OperationDefinition,
  ProtocolDefinition,
  RefusedValue,
  SlimMethod,
  StructDefinition,
  ValueDefinition,
  WireType,
} from "../schema/dsl.ts";
import type { Release } from "../schema/release.ts";

/** A field as the emitters need it. */
export interface ModelField {
  readonly wireName: string;
  readonly property: string;
  readonly type: WireType;
  readonly doc: string;
  /** Absent where the field is required. */
  readonly default?: DefaultValue;
  readonly alias?: string;
}

/** A struct with the fields of its base first. */
export interface ModelStruct {
  readonly name: string;
  readonly doc: string;
  readonly layout: Layout;
  readonly tagged: boolean;
  /** Whether it can hold a tensor, so that it is encoded to several frames. */
  readonly framed: boolean;
  readonly fields: readonly ModelField[];
}

/** A union with the names of its members. */
export interface ModelUnion {
  readonly name: string;
  readonly doc: string;
  readonly members: readonly string[];
}

/** An operation in the second control dialect. */
export interface ModelSlim {
  readonly method: string;
  readonly arguments: Readonly<Record<string, string>>;
  /** Which of `success` and `message` the operation's own reply has. */
  readonly reply: readonly string[];
  readonly choice?: { readonly property: string; readonly value: number; readonly otherwise: string };
}

/** An operation with the names of its structs. */
export interface ModelOperation extends Omit<OperationDefinition, "request" | "reply" | "refuses" | "slim"> {
  readonly request: string;
  readonly reply: string;
  readonly endsDrain: boolean;
  /** The second control dialect; with each argument's property and key. */
  readonly slim?: ModelSlim;
  /** By release, the properties that its request had not. */
  readonly lacks?: Readonly<Record<string, readonly string[]>>;
  /** Releases whose request had other fields in their places. */
  readonly misreadBy?: readonly string[];
  /** With property names in place of wire names. */
  readonly refuses: readonly RefusedValue[];
}

/** What is to be emitted, as plain data. */
export interface Model {
  readonly name: string;
  readonly release: string;
  readonly doc: string;
  /** Changes with anything the schema says. */
  readonly hash: string;
  readonly structs: readonly ModelStruct[];
  readonly values: readonly ValueDefinition[];
  readonly unions: readonly ModelUnion[];
  readonly operations: readonly ModelOperation[];
  readonly constants: readonly ConstantDefinition[];
  /** The recorded releases. */
  readonly releases: readonly string[];
  /** The files to generate; all where it is absent. */
  readonly files?: readonly GeneratedFile[];
}

function modelStruct(definition: StructDefinition, framed: boolean): ModelStruct {
  const { name, doc, layout, tagged = false } = definition;
  const fields = allFields(definition).map((field) => ({
    wireName: field.name,
    property: propertyOf(field),
    type: field.type,
    doc: field.doc,
    ...("default" in field && field.default !== undefined ? { default: field.default } : {}),
    ...(field.alias === undefined ? {} : { alias: field.alias }),
  }));
  return { name, doc, layout, tagged, framed, fields };
}

function modelOperation(definition: OperationDefinition, releases: readonly Release[]): ModelOperation {
  const fields = allFields(definition.request);
  const property = (wireName: string): string => {
    const found = fields.find(({ name }) => name === wireName);
    return found === undefined ? wireName : propertyOf(found);
  };
  const refuses = (definition.refuses ?? []).map((rule) => ({
    ...rule,
    field: property(rule.field),
    ...("other" in rule && { other: property(rule.other) }),
  }));
  const { request, reply, endsDrain = false, slim, ...rest } = definition;
  return {
    ...rest,
    request: request.name,
    reply: reply.name,
    endsDrain,
    refuses,
    ...(slim !== undefined && { slim: modelSlim(slim, definition, property) }),
    ...knownBy(request, releases),
  };
}

/** What releases know of a request: the last fields that they had not, and who had other fields in their places. */
function knownBy(request: StructDefinition, releases: readonly Release[]): Pick<ModelOperation, "lacks" | "misreadBy"> {
  const lacks: Record<string, readonly string[]> = {};
  const misreadBy: string[] = [];
  for (const { release, structs } of releases) {
    const recorded = structs.find(({ name }) => name === request.name);
    if (recorded === undefined) continue;
    // A recorded field is written as Python would: `flush_cache: bool = True`.
    const names = recorded.fields.map((text) => text.split(":")[0]);
    const missing = request.fields.filter(({ name, python }) => !names.includes(python ?? name));
    const inPlace = names.every((name, place) => name === (request.fields[place]?.python ?? request.fields[place]?.name));
    if (!inPlace && request.layout === "array") misreadBy.push(release);
    else if (missing.length > 0) lacks[release] = missing.map(propertyOf);
  }
  return { ...(Object.keys(lacks).length > 0 && { lacks }), ...(misreadBy.length > 0 && { misreadBy }) };
}

function modelSlim(slim: SlimMethod, { request, reply }: OperationDefinition, property: (wireName: string) => string): ModelSlim {
  const { method, rename = {}, choice } = slim;
  // the base fields mean nothing in that dialect
  const own = request.fields.filter(({ name }) => name !== choice?.field);
  return {
    method,
    arguments: Object.fromEntries(own.map(({ name }) => [property(name), rename[name] ?? name])),
    reply: reply.fields.map(({ name }) => name).filter((name) => name === "success" || name === "message"),
    ...(choice !== undefined && { choice: { property: property(choice.field), value: choice.value, otherwise: choice.otherwise } }),
  };
}

/** Builds the model of a checked protocol. */
export function buildModel(protocol: ProtocolDefinition): Model {
  const { name, release, doc, constants, operations, values = [] } = protocol;
  const structs = allStructs(protocol);
  const framed = framedStructs(structs);
  const unions = protocol.unions.map((union) => ({
    name: union.name,
    doc: union.doc,
    members: membersOf(protocol, union.members).map((member) => member.name),
  }));
  return {
    name,
    release,
    doc,
    hash: hashOf(protocol),
    structs: structs.map((struct) => modelStruct(struct, framed.has(struct.name))),
    values,
    unions,
    operations: operations.map((operation) => modelOperation(operation, protocol.releases ?? [])),
    constants,
    releases: (protocol.releases ?? []).map(({ release }) => release),
    ...(protocol.files !== undefined && { files: protocol.files }),
  };
}

function hashOf(protocol: ProtocolDefinition): string {
  const text = JSON.stringify(protocol, (_, value: unknown) => (typeof value === "bigint" ? `${value}n` : value));
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
