import type { ValueDefinition, WireType } from "../../schema/dsl.ts";
import type { Model, ModelField, ModelStruct, ModelUnion } from "../model.ts";
import { localNames, propertyKey, quote, quoteBytes } from "../names.ts";
import { packArrayHeader, packDefault, packMapHeader, packStr } from "../pack.ts";
import { declareConstant, declareFunction, declareImport, type EmitOptions, type Statements } from "./file.ts";
import { HelperNames } from "./helper-names.ts";
import { literalText, nests, runtimeName } from "./view.ts";

/** What the code around a struct's fields uses, so that no field's variable hides it. */
const usedNames = new Set(["writer", "init", "field", "error", "property", "empty", "undefined", "NaN", "Infinity"]);

/** Emits `encoders.ts`: one straight-line function for each struct. */
export function emitEncoders(model: Model, options: EmitOptions): Statements {
  const named = [...model.structs, ...model.values, ...model.unions].map(({ name }) => name);
  const emitter = new EncoderEmitter(named);
  const statements = [
    ...model.structs.flatMap((struct) => emitter.struct(struct)),
    ...model.values.flatMap((value) => emitter.value(value)),
    ...model.unions.flatMap((union) => emitter.union(union)),
  ];
  statements.push(...emitter.helpers);
  const types = named.map((name) => `${name}Init`);
  return [declareImport(options.wire, emitter.runtime), declareImport(`./types${options.extension}`, types, true), ...statements];
}

class EncoderEmitter {
  readonly runtime = new Set<string>(["type Writer"]);
  /** Functions for types that the runtime has none for. */
  readonly helpers: Statements = [];

  private readonly names: HelperNames;

  constructor(structs: readonly string[]) {
    this.names = new HelperNames("write", structs);
  }

  private use(name: string): string {
    this.runtime.add(name);
    return name;
  }

  struct(struct: ModelStruct): Statements {
    const { name, fields, tagged, framed, layout } = struct;
    const properties = fields.map(({ property }) => property);
    const locals = localNames(properties, usedNames);
    const known = [...properties, ...(tagged ? ["$tag"] : [])];
    const list = `propertiesOf${name}`;
    const body = [`${this.use("checkProperties")}(init, ${list});`];
    const names = properties.map((property, i) => (property === locals[i] ? property : `${propertyKey(property)}: ${locals[i]}`));
    const picked = [...(tagged ? ["$tag"] : []), ...names];
    if (picked.length > 0) body.push(`const { ${picked.join(", ")} } = init as ${name}Init;`);
    if (tagged)
      body.push(
        `if ($tag !== undefined && $tag !== ${quote(name)}) throw ${this.use("invalidValue")}("$tag", ${quote(JSON.stringify(name))}, $tag);`,
      );
    const nesting = fields.some(({ type }) => nests(type));
    if (nesting) body.push(`${this.use("enterWriter")}(writer, "");`);
    const head =
      layout === "map" ? packMapHeader(fields.length) : packArrayHeader(fields.length + (tagged ? 1 : 0)) + (tagged ? packStr(name) : "");
    body.push(`${this.use("writeHead")}(writer, headOf${name});`);
    fields.forEach((field, i) => {
      if (layout === "map") body.push(`${this.use("writeRaw")}(writer, ${quoteBytes(packStr(field.wireName))});`);
      body.push(...this.field(field, locals[i] as string));
    });
    if (nesting) body.push("writer.depth--;");
    return [
      declareConstant({ name: `headOf${name}`, value: `/* @__PURE__ */ ${this.use("prepareHead")}(${quoteBytes(head)})` }),
      declareConstant({ name: list, type: "readonly string[]", value: `[${known.map(quote).join(", ")}]` }),
      declareFunction({
        name: `write${name}`,
        parameters: [
          ["writer", "Writer"],
          ["init", "unknown"],
          ["field", "string"],
        ],
        returns: "void",
        body: this.guarded(body, "field"),
      }),
      framed ? this.encodeFrames(name) : this.encode(name, `a \`${name}\``),
    ];
  }

  private encode(name: string, what: string): Statements[number] {
    return declareFunction({
      name: `encode${name}`,
      doc: `Encodes ${what}. \`maxDepth\` limits nesting; 64 by default.`,
      exported: true,
      parameters: [
        ["init", `${name}Init`],
        ["maxDepth?", "number"],
      ],
      returns: "Uint8Array<ArrayBuffer>",
      body: [`return ${this.use("encodeWith")}(write${name}, init, ${quote(name)}, maxDepth);`],
    });
  }

  private encodeFrames(name: string): Statements[number] {
    this.runtime.add("type Frames");
    return declareFunction({
      name: `encode${name}`,
      doc: `Encodes a \`${name}\` to frames: the payload, then one for each tensor of 256 bytes or more, copied. \`maxDepth\` limits nesting; 64 by default.`,
      exported: true,
      parameters: [
        ["init", `${name}Init`],
        ["maxDepth?", "number"],
      ],
      returns: "Frames",
      body: [`return ${this.use("encodeFramesWith")}(write${name}, init, ${quote(name)}, maxDepth);`],
    });
  }

  value({ name, type }: ValueDefinition): Statements {
    const parameters = [
      ["writer", "Writer"],
      ["value", "unknown"],
      ["field", "string"],
    ] as const;
    return [
      declareFunction({ name: `write${name}`, parameters, returns: "void", body: this.write(type, "value", "field") }),
      this.encode(name, `\`${name}\``),
    ];
  }

  union({ name, members }: ModelUnion): Statements {
    this.use("checkObject");
    const body = [
      "checkObject(init, field);",
      `const tag: unknown = (init as { readonly $tag?: unknown }).$tag;`,
      "switch (tag) {",
      ...members.flatMap((member) => [`  case ${quote(member)}:`, `    return write${member}(writer, init, ${quote(member)});`]),
      "  default:",
      `    throw ${this.use("unknownUnionTag")}(field, ${quote(`one of the tags of ${name}`)}, tag);`,
      "}",
    ];
    return [
      declareFunction({
        name: `write${name}`,
        parameters: [
          ["writer", "Writer"],
          ["init", "unknown"],
          ["field", "string"],
        ],
        returns: "void",
        body,
      }),
      this.encode(name, "the struct that `$tag` names"),
    ];
  }

  private guarded(body: readonly string[], step: string): string[] {
    return ["try {", ...body.map((line) => `  ${line}`), "} catch (error) {", `  throw ${this.use("within")}(error, ${step});`, "}"];
  }

  private field(field: ModelField, local: string): string[] {
    const { type, wireName } = field;
    const label = quote(wireName);
    if (field.default === undefined) {
      return [`if (${local} === undefined) throw ${this.use("missingField")}(${label});`, ...this.write(type, local, label)];
    }
    if (type.kind === "nullable" && field.default === null) {
      return this.either(
        `${local} === undefined || ${local} === null`,
        `${this.use("writeNil")}(writer);`,
        this.write(type.inner, local, label),
      );
    }
    const fallback = `${this.use("writeRaw")}(writer, ${quoteBytes(packDefault(type, field.default))});`;
    return this.either(`${local} === undefined`, fallback, this.write(type, local, label));
  }

  private either(condition: string, then: string, otherwise: readonly string[]): string[] {
    if (otherwise.length === 1) return [`if (${condition}) ${then}`, `else ${otherwise[0]}`];
    const first = otherwise[0] as string;
    if (first.startsWith("if (")) return [`if (${condition}) ${then}`, `else ${first}`, ...otherwise.slice(1)];
    return [`if (${condition}) {`, `  ${then}`, "} else {", ...otherwise.map((line) => `  ${line}`), "}"];
  }

  /** Statements that write a value of a type. `label` is an expression: the step of a path. */
  private write(type: WireType, value: string, label: string): string[] {
    const runtime = runtimeName(type);
    if (runtime !== undefined) return [`${this.use(`write${runtime}`)}(writer, ${value}, ${label});`];
    switch (type.kind) {
      case "nullable":
        return this.either(`${value} === null`, `${this.use("writeNil")}(writer);`, this.write(type.inner, value, label));
      case "literal":
        this.use("writeRaw");
        return [
          `switch (${value}) {`,
          ...type.values.flatMap((literal) => [
            `  case ${typeof literal === "string" ? quote(literal) : literal}:`,
            `    writeRaw(writer, ${quoteBytes(packDefault(type, literal))});`,
            "    break;",
          ]),
          "  default:",
          `    throw ${this.use("invalidValue")}(${label}, ${quote(literalText(type.values))}, ${value});`,
          "}",
        ];
      case "map":
        return [`${this.use("writeMap")}(writer, ${value}, ${label}, ${this.function(type.value)});`];
      default:
        return [`${this.function(type)}(writer, ${value}, ${label});`];
    }
  }

  /** The name of a function that writes a type. */
  private function(type: WireType): string {
    const runtime = runtimeName(type);
    if (runtime !== undefined) return this.use(`write${runtime}`);
    if (type.kind === "struct") return `write${type.name}`;
    return this.names.get(type, (name) => {
      const parameters = [
        ["writer", "Writer"],
        ["value", "unknown"],
        ["field", "string"],
      ] as const;
      this.helpers.push(declareFunction({ name, parameters, returns: "void", body: this.helperBody(type) }));
    });
  }

  private helperBody(type: WireType): string[] {
    if (type.kind !== "list" && type.kind !== "set" && type.kind !== "tuple") return this.write(type, "value", "field");
    const invalid = this.use("invalidValue");
    const header = this.use("writeArrayHeader");
    const within = this.use("within");
    if (type.kind === "tuple") {
      const { length } = type.items;
      return [
        `if (!Array.isArray(value) || value.length !== ${length}) throw ${invalid}(field, ${quote(`an array of ${length}`)}, value);`,
        `const items: readonly unknown[] = value;`,
        `try {`,
        `  ${header}(writer, ${length});`,
        ...type.items.flatMap((item, i) => [
          `  const item${i} = items[${i}];`,
          ...this.write(item, `item${i}`, quote(`[${i}]`)).map((line) => `  ${line}`),
        ]),
        "} catch (error) {",
        `  throw ${within}(error, field);`,
        "}",
      ];
    }
    return [
      `if (!Array.isArray(value)) throw ${invalid}(field, "an array", value);`,
      "const items: readonly unknown[] = value;",
      "const { length } = items;",
      `${header}(writer, length);`,
      "let i = 0;",
      "try {",
      "  for (; i < length; i++) {",
      "    const item = items[i];",
      ...this.write(type.item, "item", '""').map((line) => `    ${line}`),
      "  }",
      "} catch (error) {",
      `  throw ${within}(${within}(error, i), field);`,
      "}",
    ];
  }
}
