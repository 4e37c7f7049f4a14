import { allFields, allStructs } from "../../schema/derive.ts";
import type { ProtocolDefinition, WireType } from "../../schema/dsl.ts";
import { type Contract, type ContractStruct, type ContractType, unionOf } from "./contract.ts";

/** What the schema says, in the terms of the engine's source. */
export function readSchema(protocol: ProtocolDefinition): Contract {
  const structs = allStructs(protocol);
  const pythonNames = new Map(structs.map(({ name, python }) => [name, python ?? name]));
  const requests = new Set(protocol.operations.map(({ request }) => request.name));
  const replies = new Set(protocol.operations.map(({ reply }) => reply.name));
  return {
    name: "the schema",
    kind: "schema",
    leftOut: protocol.leavesOut ?? [],
    structs: structs.map((struct): ContractStruct => {
      const { name, layout, tagged, python, definedIn, doc } = struct;
      return {
        name,
        layout,
        doc,
        ...(tagged === true ? { tag: name } : {}),
        ...(python === undefined ? {} : { python }),
        ...(definedIn === undefined ? {} : { file: definedIn }),
        ...(requests.has(name) ? { direction: "request" } : replies.has(name) ? { direction: "reply" } : {}),
        ...(struct.extends === undefined ? {} : { base: struct.extends.name }),
        fields: allFields(struct).map((field) => ({
          name: field.name,
          type: contractType(field.type, pythonNames),
          doc: field.doc,
          ...(field.default === undefined ? {} : { default: field.default }),
          ...(field.python === undefined ? {} : { python: field.python }),
          ...(struct.extends?.fields.includes(field) === true ? { from: struct.extends.name } : {}),
        })),
      };
    }),
  };
}

function contractType(type: WireType, names: ReadonlyMap<string, string>): ContractType {
  const of = (inner: WireType): ContractType => contractType(inner, names);
  switch (type.kind) {
    case "i32":
    case "u16":
    case "u32":
    case "i64":
    case "u64":
      return { kind: "int", range: type.kind };
    case "f64":
      return { kind: "float" };
    case "dict":
      return { kind: "map", key: { kind: "any" }, value: { kind: "any" } };
    case "map":
      return { kind: "map", key: { kind: "str" }, value: of(type.value) };
    case "list":
    case "set":
      return { kind: type.kind, item: of(type.item) };
    case "tuple":
      return { kind: "tuple", items: type.items.map(of) };
    case "nullable":
      return unionOf([of(type.inner), { kind: "none" }]);
    case "strOrList":
      return unionOf([{ kind: "str" }, { kind: "list", item: { kind: "str" } }]);
    case "struct":
      return { kind: "struct", name: names.get(type.name) ?? type.name };
    case "literal":
      return { kind: "literal", values: type.values };
    default:
      return { kind: type.kind };
  }
}
