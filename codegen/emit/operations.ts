import { StructureKind } from "ts-morph";
import type { Model, ModelOperation } from "../model.ts";
import { propertyKey, quote } from "../names.ts";
import { declareConstant, declareImport, docs, type EmitOptions, type Statements } from "./file.ts";

const operationProperties = [
  ["name", "string", "The client's method."],
  ["request", "string", "Tag of the request."],
  ["reply", "string", "Tag of the reply."],
  ["effect", '"read" | "admission" | "memory" | "weights" | "profile"', "What it acts on: decides who may call it and what it excludes."],
  [
    "answers",
    '"at once" | "drained" | "gated"',
    "When an engine answers: in the round the request arrives in, when no request is left running, or when every engine of the group holds the same operation.",
  ],
  ["timeoutMs", "number", "How long a call waits by default, in milliseconds."],
  ["repeatable", "boolean", "Whether sending it again after an unknown outcome does no harm."],
  ["since", "string", "The first engine release that answers it."],
  ["summary", "string", "A few words for help texts."],
  ["doc", "string", "Sentences on behaviour."],
  ["slim?", "SlimMethod", "How the second control dialect says it; absent where it cannot."],
  [
    "lacks?",
    "{ readonly [release: string]: readonly string[] }",
    "By engine release, the properties that its request had not, all of them the last: left out for such an engine.",
  ],
  ["misreadBy?", "readonly string[]", "Engine releases whose request had other fields in their places: it must not be sent to them."],
  ["endsDrain", "boolean", "Whether it ends a pause or a release that does not drain, so that it must not wait for one."],
  ["unpickles?", "true", "Whether an engine unpickles bytes of the request, so that whoever may send them may run code there."],
  ["refuses", "readonly RefusedValue[]", "Values that the engine accepts and that then wedge or kill it; they must not be sent."],
] as const;

const slimProperties = [
  ["method", "string", "The method."],
  ["arguments", "{ readonly [property: string]: string }", "The key of each property among the arguments."],
  ["reply", "readonly string[]", "Which of `success` and `message` the operation's own reply has."],
  [
    "choice?",
    "{ readonly property: string; readonly value: number; readonly otherwise: string }",
    "The property that has this value for the method, and calls another one without arguments otherwise.",
  ],
] as const;

const refusedProperties = [
  ["field", "string", "The property of the request."],
  ["because", "string", "What the engine would do, and what to send instead."],
  ["when", "string", "What about its value is refused."],
  ["values?", "readonly string[]", "What an item must be one of."],
  ["limit?", "number", "What it must not be below or above."],
  ["other?", "string", "The property it is compared with."],
] as const;

/** Emits `operations.ts`: the operations as data, without any codec. */
export function emitOperations(model: Model, options: EmitOptions): Statements {
  const { operations, constants } = model;
  const types = operations.flatMap(({ request, reply }) => [`${request}Init`, reply]);
  const properties = (list: readonly (readonly [name: string, type: string, doc: string])[]) =>
    list.map(([name, type, doc]) => ({
      name: name.replace("?", ""),
      type,
      isReadonly: true,
      hasQuestionToken: name.endsWith("?"),
      docs: docs(doc),
    }));
  return [
    ...(types.length === 0 ? [] : [declareImport(`./types${options.extension}`, types, true)]),
    ...constants.map(({ name, value, doc }) =>
      declareConstant({ name, doc, exported: true, value: typeof value === "string" ? quote(value) : String(value) }),
    ),
    {
      kind: StructureKind.Interface,
      name: "RefusedValue",
      isExported: true,
      docs: docs("A value that must not be sent."),
      properties: properties(refusedProperties),
    },
    {
      kind: StructureKind.Interface,
      name: "SlimMethod",
      isExported: true,
      docs: docs("An operation in the second control dialect, that of the SMG gateway."),
      properties: properties(slimProperties),
    },
    {
      kind: StructureKind.Interface,
      name: "Operation",
      isExported: true,
      docs: docs("What the schema says about an operation."),
      properties: properties(operationProperties),
    },
    {
      kind: StructureKind.TypeAlias,
      name: "EngineRelease",
      isExported: true,
      type: "(typeof engineReleases)[number]",
      docs: docs("An engine release whose requests are recorded."),
    },
    declareConstant({
      name: "engineReleases",
      doc: "The engine releases whose requests are recorded.",
      exported: true,
      value: `${literal(model.releases)} as const`,
    }),
    declareConstant({
      name: "operations",
      doc: "Every operation by the name of the client's method, in the order of documentation.",
      exported: true,
      value: `${operationsObject(operations)} as const satisfies { readonly [name: string]: Operation }`,
    }),
    {
      kind: StructureKind.TypeAlias,
      name: "OperationName",
      isExported: true,
      type: "keyof typeof operations",
      docs: docs("The name of an operation."),
    },
    {
      kind: StructureKind.Interface,
      name: "OperationTypes",
      isExported: true,
      docs: docs("What each operation takes and what an engine replies."),
      properties: operations.map(({ name, request, reply, summary }) => ({
        name: propertyKey(name),
        type: `{ readonly init: ${request}Init; readonly reply: ${reply} }`,
        isReadonly: true,
        docs: docs(`${summary}.`),
      })),
    },
  ];
}

function operationsObject(operations: readonly ModelOperation[]): string {
  if (operations.length === 0) return "{}";
  return `{\n${operations.map((operation) => `  ${propertyKey(operation.name)}: {\n${entries(operation)}\n  },`).join("\n")}\n}`;
}

function entries(operation: ModelOperation): string {
  return operationProperties
    .flatMap(([key]) => {
      const value = operation[key.replace("?", "") as keyof ModelOperation];
      return value === undefined ? [] : `    ${key.replace("?", "")}: ${literal(value)},`;
    })
    .join("\n");
}

/** A value as an expression of one line. */
function literal(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object" || value === null) return String(value);
  const members = Object.entries(value).map(([name, member]) => `${propertyKey(name)}: ${literal(member)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}
