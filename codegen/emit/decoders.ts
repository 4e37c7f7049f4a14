import { leavesOf } from "../../schema/derive.ts";
import type { ValueDefinition, WireType } from "../../schema/dsl.ts";
import type { Model, ModelField, ModelStruct, ModelUnion } from "../model.ts";
import { localNames, propertyKey, quote, quoteBytes } from "../names.ts";
import { defaultExpression, packArrayHeader, packStr } from "../pack.ts";
import { declareConstant, declareFunction, declareImport, type EmitOptions, type Statements } from "./file.ts";
import { HelperNames } from "./helper-names.ts";
import { decodedType, literalText, nests, runtimeName } from "./view.ts";

/** What the code around a struct's fields uses, so that no field's variable hides it. */
const usedNames = new Set(["reader", "count", "field", "error", "i", "undefined", "NaN", "Infinity"]);

const readParameters = [
  ["reader", "Reader"],
  ["field", "string"],
] as const;

/** Emits `decoders.ts`: one straight-line function for each struct. */
export function emitDecoders(model: Model, options: EmitOptions): Statements {
  const named = [...model.structs, ...model.values, ...model.unions].map(({ name }) => name);
  const emitter = new DecoderEmitter(named);
  const statements = [
    ...model.structs.flatMap((struct) => emitter.struct(struct)),
    ...model.values.flatMap((value) => emitter.value(value)),
    ...model.unions.flatMap((union) => emitter.union(union)),
  ];
  statements.push(...emitter.helpers);
  const types = [...emitter.runtimeTypes].map((name) => `type ${name}`);
  return [
    declareImport(options.wire, [...emitter.runtime, ...types]),
    declareImport(`./types${options.extension}`, named, true),
    `export { peekTag } from ${quote(options.wire)};`,
    ...statements,
  ];
}

class DecoderEmitter {
  readonly runtime = new Set<string>(["type Reader"]);
  readonly runtimeTypes = new Set<string>();
  /** Functions for types that the runtime has none for. */
  readonly helpers: Statements = [];

  private readonly names: HelperNames;

  constructor(structs: readonly string[]) {
    this.names = new HelperNames("read", structs);
  }

  private use(name: string): string {
    this.runtime.add(name);
    return name;
  }

  private type(type: WireType): string {
    const text = decodedType(type);
    if (text.includes("DynamicMap<")) this.runtimeTypes.add("DynamicMap");
    if (leavesOf(type).some(({ kind }) => kind === "tensor")) this.runtimeTypes.add("Tensor");
    return text;
  }

  struct(struct: ModelStruct): Statements {
    const { name, tagged, layout, framed, fields } = struct;
    const statements: Statements = [];
    let fieldsCount: string;
    if (layout === "map") fieldsCount = `${this.use("readMapHeader")}(reader, "")`;
    else if (!tagged) fieldsCount = `${this.use("readArrayHeader")}(reader, "")`;
    else {
      statements.push(
        declareConstant({
          name: `headOf${name}`,
          value: `/* @__PURE__ */ ${this.use("prepareHead")}(${quoteBytes(packArrayHeader(fields.length + 1) + packStr(name))})`,
        }),
      );
      fieldsCount = `${this.use("readHead")}(reader, "", headOf${name}, ${fields.length}, ${quote(name)})`;
    }
    statements.push(
      declareFunction({
        name: `read${name}`,
        parameters: readParameters,
        returns: name,
        body: this.guarded([`return readFieldsOf${name}(reader, ${fieldsCount});`], "field"),
      }),
      declareFunction({
        name: `readFieldsOf${name}`,
        parameters: [
          ["reader", "Reader"],
          ["count", "number"],
        ],
        returns: name,
        body: layout === "map" ? this.mapBody(struct) : this.arrayBody(struct),
      }),
      framed ? this.decodeFrames(name) : this.decode(name, `a \`${name}\``),
    );
    return statements;
  }

  private decode(name: string, what: string): Statements[number] {
    return declareFunction({
      name: `decode${name}`,
      doc: `Decodes ${what}. \`maxDepth\` limits nesting; 64 by default.`,
      exported: true,
      parameters: [
        ["bytes", "Uint8Array"],
        ["maxDepth?", "number"],
      ],
      returns: name,
      body: [`return ${this.use("decodeWith")}(read${name}, bytes, ${quote(name)}, maxDepth);`],
    });
  }

  private decodeFrames(name: string): Statements[number] {
    return declareFunction({
      name: `decode${name}`,
      doc: `Decodes a \`${name}\` from its frames: the payload, then those of tensors, which stay where they are. \`maxDepth\` limits nesting; 64 by default.`,
      exported: true,
      parameters: [
        ["frames", "readonly Uint8Array[]"],
        ["maxDepth?", "number"],
      ],
      returns: name,
      body: [`return ${this.use("decodeFramesWith")}(read${name}, frames, ${quote(name)}, maxDepth);`],
    });
  }

  value({ name, type }: ValueDefinition): Statements {
    const body = [`return ${this.read(type, "field")};`];
    return [declareFunction({ name: `read${name}`, parameters: readParameters, returns: name, body }), this.decode(name, `\`${name}\``)];
  }

  private arrayBody({ name, tagged, fields }: ModelStruct): string[] {
    const locals = localNames(
      fields.map(({ property }) => property),
      usedNames,
    );
    const nesting = fields.some(({ type }) => nests(type));
    const body = nesting ? [`${this.use("enterReader")}(reader, "");`] : [];
    fields.forEach((field, i) => {
      const label = quote(field.wireName);
      const fallback =
        field.default === undefined ? `${this.use("missingElement")}(reader, ${label})` : defaultExpression(field.type, field.default);
      body.push(`const ${locals[i]}: ${this.type(field.type)} = count > ${i} ? ${this.read(field.type, label, true)} : ${fallback};`);
    });
    body.push(`if (count > ${fields.length}) ${this.use("skipValues")}(reader, count - ${fields.length}, "");`);
    if (nesting) body.push("reader.depth--;");
    body.push(this.result(name, tagged, fields, locals));
    return body;
  }

  private mapBody({ name, fields }: ModelStruct): string[] {
    const locals = localNames(
      fields.map(({ property }) => property),
      usedNames,
    );
    const nesting = fields.some(({ type }) => nests(type));
    const body = nesting ? [`${this.use("enterReader")}(reader, "");`] : [];
    fields.forEach((field, i) => {
      const type = this.type(field.type);
      if (field.default === undefined) body.push(`let ${locals[i]}: ${type} | undefined;`);
      else body.push(`let ${locals[i]}: ${type} = ${defaultExpression(field.type, field.default)};`);
    });
    body.push("for (let i = 0; i < count; i++) {", `  switch (${this.use("readRepeatedStr")}(reader, "")) {`);
    fields.forEach((field, i) => {
      body.push(`    case ${quote(field.wireName)}:`);
      if (field.alias !== undefined) body.push(`    case ${quote(field.alias)}:`);
      body.push(`      ${locals[i]} = ${this.read(field.type, quote(field.wireName))};`, "      break;");
    });
    body.push("    default:", `      ${this.use("skipValues")}(reader, 1, "");`, "  }", "}");
    fields.forEach((field, i) => {
      if (field.default === undefined) {
        body.push(`if (${locals[i]} === undefined) ${this.use("missingElement")}(reader, ${quote(field.wireName)});`);
      }
    });
    if (nesting) body.push("reader.depth--;");
    body.push(this.result(name, false, fields, locals));
    return body;
  }

  private result(name: string, tagged: boolean, fields: readonly ModelField[], locals: readonly string[]): string {
    const properties = fields.map(({ property }, i) => (property === locals[i] ? property : `${propertyKey(property)}: ${locals[i]}`));
    const all = [...(tagged ? [`$tag: ${quote(name)}`] : []), ...properties];
    return all.length === 0 ? "return {};" : `return { ${all.join(", ")} };`;
  }

  union({ name, members }: ModelUnion): Statements {
    const body = [
      "let step = field;",
      "try {",
      `  const count = ${this.use("readArrayHeader")}(reader, "") - 1;`,
      "  const { position } = reader;",
      `  const tag = ${this.use("readTag")}(reader, "", count);`,
      "  switch (tag) {",
      ...members.flatMap((member) => [
        `    case ${quote(member)}:`,
        `      step = ${quote(member)};`,
        `      return readFieldsOf${member}(reader, count);`,
      ]),
      "    default:",
      `      throw ${this.use("unknownTag")}("", ${quote(`one of the tags of ${name}`)}, tag, position);`,
      "  }",
      "} catch (error) {",
      `  throw ${this.use("within")}(error, step);`,
      "}",
    ];
    return [
      declareFunction({ name: `read${name}`, parameters: readParameters, returns: name, body }),
      this.decode(name, "the struct that the tag names"),
    ];
  }

  private guarded(body: readonly string[], step: string): string[] {
    return ["try {", ...body.map((line) => `  ${line}`), "} catch (error) {", `  throw ${this.use("within")}(error, ${step});`, "}"];
  }

  /** An expression that reads a type. `label` is an expression: the step of a path. */
  private read(type: WireType, label: string, nested = false): string {
    if (type.kind === "nullable" && type.inner.kind !== "any") {
      const text = `${this.use("readNil")}(reader) ? null : ${this.read(type.inner, label)}`;
      return nested ? `(${text})` : text;
    }
    if (type.kind === "map") return `${this.use("readMap")}(reader, ${label}, ${this.function(type.value)})`;
    return `${this.function(type)}(reader, ${label})`;
  }

  /** The name of a function that reads a type. */
  private function(type: WireType): string {
    if (type.kind === "nullable" && type.inner.kind === "any") return this.use("readAny");
    const runtime = runtimeName(type);
    // A single text (a mode, a group's name) is likely to come again; the texts of lists are handled in bulk.
    if (runtime === "Str") return this.use("readRepeatedStr");
    if (runtime !== undefined) return this.use(`read${runtime}`);
    if (type.kind === "struct") return `read${type.name}`;
    return this.names.get(type, (name) => {
      this.helpers.push(declareFunction({ name, parameters: readParameters, returns: this.type(type), body: this.helperBody(type) }));
    });
  }

  private helperBody(type: WireType): string[] {
    switch (type.kind) {
      case "literal":
        return this.literalBody(type.values);
      case "list":
      case "set":
        return [
          `const length = ${this.use("readArrayHeader")}(reader, field);`,
          "let i = 0;",
          "try {",
          `  const list = ${this.use("newList")}<${this.type(type.item)}>(length);`,
          `  for (; i < length; i++) list[i] = ${this.read(type.item, '""')};`,
          "  return list;",
          "} catch (error) {",
          `  throw ${this.use("within")}(within(error, i), field);`,
          "}",
        ];
      case "tuple": {
        const { length } = type.items;
        return [
          "const { position } = reader;",
          `const length = ${this.use("readArrayHeader")}(reader, field);`,
          `if (length !== ${length}) throw ${this.use("malformed")}(field, ${quote(`an array of ${length}`)}, \`an array of \${length}\`, position);`,
          ...this.guarded([`return [${type.items.map((item, i) => this.read(item, quote(`[${i}]`))).join(", ")}];`], "field"),
        ];
      }
      default:
        return [`return ${this.read(type, "field")};`];
    }
  }

  private literalBody(values: readonly (string | number)[]): string[] {
    const strings = values.every((value) => typeof value === "string");
    const numbers = values.every((value) => typeof value === "number");
    const reader = strings ? "readRepeatedStr" : numbers ? "readInteger" : "readAny";
    return [
      "const { position } = reader;",
      `const value = ${this.use(reader)}(reader, field);`,
      "switch (value) {",
      ...values.map((value) => `  case ${typeof value === "string" ? quote(value) : value}:`),
      "    return value;",
      "  default:",
      `    throw ${this.use("malformed")}(field, ${quote(literalText(values))}, ${this.use("kindOf")}(value), position);`,
      "}",
    ];
  }
}
