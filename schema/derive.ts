import type { FieldDefinition, ProtocolDefinition, StructDefinition, WireType } from "./dsl.ts";

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

/** Names of the structs that can hold a tensor, themselves or in a struct of theirs: they are encoded to several frames. */
export function framedStructs(structs: readonly StructDefinition[]): ReadonlySet<string> {
  const framed = new Set<string>();
  const holds = (struct: StructDefinition): boolean =>
    allFields(struct).some(({ type }) =>
      leavesOf(type).some((leaf) => leaf.kind === "tensor" || (leaf.kind === "struct" && framed.has(leaf.name))),
    );
  for (let before = -1; before < framed.size; ) {
    before = framed.size;
    for (const struct of structs) if (holds(struct)) framed.add(struct.name);
  }
  return framed;
}

/** The types that a type is made of, without the lists, maps and tuples around them. */
export function leavesOf(type: WireType): readonly WireType[] {
  switch (type.kind) {
    case "list":
    case "set":
      return leavesOf(type.item);
    case "map":
      return leavesOf(type.value);
    case "tuple":
      return type.items.flatMap(leavesOf);
    case "nullable":
      return leavesOf(type.inner);
    default:
      return [type];
  }
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
