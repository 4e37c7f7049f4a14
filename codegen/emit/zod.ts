import type { WireType } from "../../schema/dsl.ts";
import type { Model, ModelStruct } from "../model.ts";
import { propertyKey, quote } from "../names.ts";
import { declareConstant, declareImport, type EmitOptions, type Statements } from "./file.ts";

/** Emits `zod.ts`: validators for what a user gives as JSON. */
export function emitZod(model: Model, options: EmitOptions): Statements {
  const types = model.structs.map(({ name }) => `${name}Init`);
  return [
    'import * as z from "zod";',
    declareImport(`./types${options.extension}`, types, true),
    ...sharedValidators(model),
    ...model.structs.map(validator),
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

const helpers = {
  // JSON has neither bytes nor integers of 64 bits: both may be given as text.
  bytes: [
    "bytesSchema",
    "z.ZodType<Uint8Array>",
    "z.union([z.instanceof(Uint8Array), z.base64().transform((text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)))])",
  ],
  u64: [
    "uint64Schema",
    "z.ZodType<number | bigint>",
    "z.union([z.bigint().nonnegative().lt(2n ** 64n), z.int().nonnegative(), z.string().regex(/^\\d{1,20}$/).transform(BigInt).pipe(z.bigint().lt(2n ** 64n))])",
  ],
} as const;

function sharedValidators(model: Model): Statements {
  const text = model.structs.flatMap(({ fields }) => fields.map(({ type }) => expression(type))).join(" ");
  return Object.values(helpers)
    .filter(([name]) => text.includes(name))
    .map(([name, type, value]) => declareConstant({ name, type, value: `/* @__PURE__ */ (() => ${value})()` }));
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
    case "any":
      return "z.unknown()";
    case "list":
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
