import { StructureKind } from "ts-morph";
import { leavesOf } from "../../schema/derive.ts";
import type { Model, ModelField, ModelStruct } from "../model.ts";
import { docText, propertyKey, quote } from "../names.ts";
import { defaultExpression } from "../pack.ts";
import { declareImport, docs, type EmitOptions, type Statements } from "./file.ts";
import { decodedType, initType } from "./view.ts";

/** Emits `types.ts`: what decoders return and what encoders accept. */
export function emitTypes(model: Model, options: EmitOptions): Statements {
  const statements: Statements = model.structs.flatMap((struct) => [decodedInterface(struct), initInterface(struct)]);
  for (const { name, doc, members } of model.unions) {
    statements.push(
      { kind: StructureKind.TypeAlias, name, isExported: true, type: members.join(" | ") || "never", docs: docs(doc) },
      {
        kind: StructureKind.TypeAlias,
        name: `${name}Init`,
        isExported: true,
        type: members.map((member) => `(${member}Init & { readonly $tag: ${quote(member)} })`).join(" | ") || "never",
        docs: docs(`${docText(doc)} As encoders accept it: the tag tells which.`),
      },
    );
  }
  for (const { name, type, doc } of model.values) {
    statements.push(
      { kind: StructureKind.TypeAlias, name, isExported: true, type: decodedType(type), docs: docs(doc) },
      {
        kind: StructureKind.TypeAlias,
        name: `${name}Init`,
        isExported: true,
        type: initType(type),
        docs: docs(`${docText(doc)} As encoders accept it.`),
      },
    );
  }
  const types = [...model.structs.flatMap(({ fields }) => fields.map(({ type }) => type)), ...model.values.map(({ type }) => type)];
  const text = types.flatMap((type) => [decodedType(type), initType(type)]).join(" ");
  const used = ["DynamicMap<", "DynamicMapInit<"].filter((name) => text.includes(name)).map((name) => name.slice(0, -1));
  if (types.some((type) => leavesOf(type).some(({ kind }) => kind === "tensor"))) used.push("Tensor");
  if (used.length > 0) statements.unshift(declareImport(options.wire, used, true));
  return statements;
}

function decodedInterface(struct: ModelStruct): Statements[number] {
  const tag = { name: "$tag", type: quote(struct.name), isReadonly: true, docs: docs("Tells it from the other structs of its union.") };
  return {
    kind: StructureKind.Interface,
    name: struct.name,
    isExported: true,
    docs: docs(struct.doc),
    properties: [
      ...(struct.tagged ? [tag] : []),
      ...struct.fields.map((field) => ({
        name: propertyKey(field.property),
        type: decodedType(field.type),
        docs: docs(fieldDoc(field)),
      })),
    ],
  };
}

function initInterface(struct: ModelStruct): Statements[number] {
  const tag = {
    name: "$tag",
    type: quote(struct.name),
    isReadonly: true,
    hasQuestionToken: true,
    docs: docs("May be given, as decoders do."),
  };
  return {
    kind: StructureKind.Interface,
    name: `${struct.name}Init`,
    isExported: true,
    docs: docs(`${docText(struct.doc)} As encoders accept it.`),
    properties: [
      ...(struct.tagged ? [{ ...tag, type: `${tag.type} | undefined` }] : []),
      ...struct.fields.map((field) => {
        const optional = field.default !== undefined;
        const type = initType(field.type);
        return {
          name: propertyKey(field.property),
          type: optional && type !== "unknown" ? `${type} | undefined` : type,
          isReadonly: true,
          hasQuestionToken: optional,
          docs: docs(fieldDoc(field)),
        };
      }),
    ],
  };
}

function fieldDoc(field: ModelField): string {
  const notes: string[] = [docText(field.doc)];
  if (field.default !== undefined) notes.push(`Default: \`${defaultExpression(field.type, field.default)}\`.`);
  if (field.wireName !== field.property) notes.push(`On the wire: \`${field.wireName}\`.`);
  return notes.join(" ");
}
