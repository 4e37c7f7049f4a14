import type { FieldDefinition, ProtocolDefinition, StructDefinition } from "./dsl.ts";

/** A wire name as a TypeScript property: `http_worker_ipc` becomes `httpWorkerIpc`. Leading underscores stay. */
export function toProperty(wireName: string): string {
  const [, lead = "", rest = ""] = /^(_*)(.*)$/s.exec(wireName) ?? [];
  const [first = "", ...others] = rest.split(/[_\-. ]+/).filter((part) => part !== "");
  if (first === "") return wireName;
  return lead + first.replace(/^\p{Lu}/u, (letter) => letter.toLowerCase()) + others.map(capitalize).join("");
}

/** A text with its first letter in upper case. */
export function capitalize(text: string): string {
  return text.replace(/^./su, (letter) => letter.toUpperCase());
}

/** The property a field has in TypeScript. */
export function propertyOf(field: Pick<FieldDefinition, "name" | "property">): string {
  return field.property ?? toProperty(field.name);
}

/** A struct's fields, those of its base first. */
export function allFields(definition: StructDefinition): readonly FieldDefinition[] {
  return [...(definition.extends?.fields ?? []), ...definition.fields];
}

/** The structs of a protocol, each once: those of operations first, then the others, then union members. */
export function allStructs(protocol: ProtocolDefinition): StructDefinition[] {
  const members = protocol.unions.flatMap((union) => (typeof union.members === "string" ? [] : union.members));
  const operations = protocol.operations.flatMap(({ request, reply }) => [request, reply]);
  return [...new Set([...operations, ...protocol.structs, ...members])];
}

/** The structs of a union. */
export function membersOf(
  protocol: ProtocolDefinition,
  members: "requests" | "replies" | readonly StructDefinition[],
): readonly StructDefinition[] {
  if (members === "requests") return protocol.operations.map(({ request }) => request);
  if (members === "replies") return protocol.operations.map(({ reply }) => reply);
  return members;
}
