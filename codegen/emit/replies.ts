import { StructureKind } from "ts-morph";
import type { Model } from "../model.ts";
import { propertyKey, quote } from "../names.ts";
import { declareConstant, declareFunction, declareImport, docs, type EmitOptions, type Statements } from "./file.ts";

/** Emits `replies.ts`: which reply answers which request, as values and as types. */
export function emitReplies(model: Model, options: EmitOptions): Statements {
  const pairs = model.operations.map(({ request, reply }) => [request, reply] as const);
  const object = (entries: readonly (readonly [string, string])[]): string =>
    entries.length === 0 ? "{}" : `{\n${entries.map(([key, value]) => `  ${propertyKey(key)}: ${quote(value)},`).join("\n")}\n}`;
  const alias = (name: string, type: string, doc: string, typeParameters: string[] = []): Statements[number] => ({
    kind: StructureKind.TypeAlias,
    name,
    isExported: true,
    type,
    typeParameters,
    docs: docs(doc),
  });
  const tags = (name: string, structs: readonly string[], doc: string): Statements[number] => ({
    kind: StructureKind.Interface,
    name,
    isExported: true,
    docs: docs(doc),
    properties: structs.map((struct) => ({
      name: propertyKey(struct),
      type: struct,
      isReadonly: true,
      docs: docs(structDoc(model, struct)),
    })),
  });
  return [
    ...(pairs.length === 0 ? [] : [declareImport(`./types${options.extension}`, pairs.flat(), true)]),
    declareConstant({
      name: "replyTags",
      doc: "The tag of the reply to each request's tag.",
      exported: true,
      value: `${object(pairs)} as const`,
    }),
    declareConstant({
      name: "requestTags",
      doc: "The tag of the request that each reply's tag answers.",
      exported: true,
      value: `${object(pairs.map(([request, reply]) => [reply, request]))} as const`,
    }),
    alias("RequestTag", "keyof typeof replyTags", "The tag of a request."),
    alias("ReplyTag", "keyof typeof requestTags", "The tag of a reply."),
    tags(
      "RequestTypes",
      model.operations.map(({ request }) => request),
      "The decoded request of each request's tag.",
    ),
    tags(
      "ReplyTypes",
      model.operations.map(({ reply }) => reply),
      "The decoded reply of each reply's tag.",
    ),
    alias("RequestOf", "RequestTypes[(typeof requestTags)[Tag]]", "The request that a reply's tag answers.", ["Tag extends ReplyTag"]),
    alias("ReplyOf", "ReplyTypes[(typeof replyTags)[Tag]]", "The reply to a request's tag.", ["Tag extends RequestTag"]),
    {
      ...(declareFunction({
        name: "replyTagOf",
        doc: "The tag of the reply to a request.",
        exported: true,
        parameters: [["request", "{ readonly $tag: Tag }"]],
        returns: "(typeof replyTags)[Tag]",
        body: ["return replyTags[request.$tag];"],
      }) as object),
      typeParameters: ["Tag extends RequestTag"],
    } as Statements[number],
  ];
}

function structDoc(model: Model, name: string): string {
  return model.structs.find((struct) => struct.name === name)?.doc ?? name;
}
