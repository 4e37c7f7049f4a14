import { leavesOf } from "../../schema/derive.ts";
import type { ValueDefinition, WireType } from "../../schema/dsl.ts";
import type { Model, ModelStruct } from "../model.ts";
import { propertyKey, quote } from "../names.ts";
import { declareConstant, declareImport, type EmitOptions, type Statements } from "./file.ts";

/** Emits `zod.ts`: validators for what a user gives as JSON. */
export function emitZod(model: Model, options: EmitOptions): Statements {
  const types = [...model.structs, ...model.values].map(({ name }) => `${name}Init`);
  const shared = sharedValidators(model);
  return [
    'import * as z from "zod";',
    ...(shared.some(([name]) => name === "tensorSchema") ? [declareImport(options.wire, ["Tensor"], true)] : []),
    declareImport(`./types${options.extension}`, types, true),
    ...shared.map(([name, type, value]) => declareConstant({ name, type, value: `/* @__PURE__ */ (() => ${value})()` })),
    ...model.structs.map(validator),
    ...model.values.map(valueValidator),
  ];
}

function validator(struct: ModelStruct): Statements[number] {
  const { name, doc, tagged, fields } = struct;
  const lines = fields.map((field) => {
    const type = expression(field.type);
    return `  ${propertyKey(field.property)}: ${field.default === undefined ? type : `${type}.optional()`},`;
  });
  if (tagged) lines.unshift(`  $tag: z.literal(${quote(name)}).optional(),`);
  const object = lines.length === 0 ? "z.strictObject({})" : `z.strictObject({\n${lines.join("\n")}\n})`;
  return declareConstant({
    name: `${name}Schema`,
    doc: `Validates what \`encode${name}\` accepts, as JSON can hold it. ${doc}`,
    exported: true,
    type: `z.ZodType<${name}Init>`,
    value: `/* @__PURE__ */ (() => ${object})()`,
  });
}

function valueValidator({ name, type, doc }: ValueDefinition): Statements[number] {
  return declareConstant({
    name: `${name}Schema`,
    doc: `Validates what \`encode${name}\` accepts, as JSON can hold it. ${doc}`,
    exported: true,
    type: `z.ZodType<${name}Init>`,
    value: `/* @__PURE__ */ (() => ${expression(type)})()`,
  });
}

const helpers = {
  // JSON has neither bytes nor integers of 64 bits: both may be given as text.
  bytes: [
    "bytesSchema",
    "z.ZodType<Uint8Array>",
    "z.union([z.instanceof(Uint8Array), z.base64().transform((text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)))])",
  ],
  tensor: [
    "tensorSchema",
    "z.ZodType<Tensor>",
    "z.strictObject({ dtype: z.string(), shape: z.array(z.int().nonnegative()), data: bytesSchema })",
  ],
  u64: [
    "uint64Schema",
    "z.ZodType<number | bigint>",
    "z.union([z.bigint().nonnegative().lt(2n ** 64n), z.int().nonnegative(), z.string().regex(/^\\d{1,20}$/).transform(BigInt).pipe(z.bigint().lt(2n ** 64n))])",
  ],
} as const;

/** The helpers that validators use, and those that these use. */
function sharedValidators(model: Model): readonly (typeof helpers)[keyof typeof helpers][] {
  const types = [...model.structs.flatMap(({ fields }) => fields.map(({ type }) => type)), ...model.values.map(({ type }) => type)];
  const kinds = new Set(types.flatMap(leavesOf).map(({ kind }) => kind));
  if (kinds.has("tensor")) kinds.add("bytes");
  return (["bytes", "tensor", "u64"] as const).filter((kind) => kinds.has(kind)).map((kind) => helpers[kind]);
}

function expression(type: WireType): string {
  switch (type.kind) {
    case "bool":
      return "z.boolean()";
    case "i32":
      return "z.int32()";
    case "u16":
      return "z.int().min(0).max(65535)";
    case "u32":
      return "z.uint32()";
    case "i64":
      return "z.int()";
    case "u64":
      return "uint64Schema";
    case "f64":
      return "z.number()";
    case "str":
      return "z.string()";
    case "bytes":
      return "bytesSchema";
    case "tensor":
      return "tensorSchema";
    case "any":
      return "z.unknown()";
    case "list":
    case "set":
      return `z.array(${expression(type.item)})`;
    case "tuple":
      return `z.tuple([${type.items.map(expression).join(", ")}])`;
    case "map":
      return `z.record(z.string(), ${expression(type.value)})`;
    case "dict":
      return "z.record(z.string(), z.unknown())";
    case "nullable":
      return `${expression(type.inner)}.nullable()`;
    case "literal":
      return `z.literal([${type.values.map((value) => (typeof value === "string" ? quote(value) : String(value))).join(", ")}])`;
    case "strOrList":
      return "z.union([z.string(), z.array(z.string())])";
    case "struct":
      return `z.lazy(() => ${type.name}Schema)`;
  }
}
