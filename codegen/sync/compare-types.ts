import { type ContractType, type IntegerRange, membersOf, spellType, unionOf } from "./contract.ts";

/** How a new type stands to an old one. */
export type TypeChange = "same" | "widened" | "narrowed" | "changed";

/** Compares two types by the values that they take. */
export function compareTypes(before: ContractType, after: ContractType): TypeChange {
  const wider = takes(after, before);
  const narrower = takes(before, after);
  if (wider && narrower) return "same";
  if (wider) return "widened";
  return narrower ? "narrowed" : "changed";
}

/** A type without None, whether None was named, and whether the type takes it at all. */
export function withoutNone(type: ContractType): { readonly type: ContractType; readonly named: boolean; readonly nullable: boolean } {
  const members = membersOf(type).filter(({ kind }) => kind !== "none");
  const named = members.length < membersOf(type).length && members.length > 0;
  return { type: named ? unionOf(members) : type, named, nullable: takes(type, { kind: "none" }) };
}

const ranges: Readonly<Record<IntegerRange, readonly [low: bigint, high: bigint]>> = {
  i32: [-(2n ** 31n), 2n ** 31n - 1n],
  u16: [0n, 2n ** 16n - 1n],
  u32: [0n, 2n ** 32n - 1n],
  i64: [-(2n ** 63n), 2n ** 63n - 1n],
  u64: [0n, 2n ** 64n - 1n],
};

/** Whether every value of the narrow type is one of the wide type, as a decoder takes them. */
function takes(wide: ContractType, narrow: ContractType): boolean {
  if (wide.kind === "any") return true;
  if (narrow.kind === "union") return narrow.members.every((member) => takes(wide, member));
  if (narrow.kind === "literal" && narrow.values.length > 1) {
    return narrow.values.every((value) => takes(wide, { kind: "literal", values: [value] }));
  }
  switch (wide.kind) {
    case "union":
      return wide.members.some((member) => takes(member, narrow));
    case "int":
      return narrow.kind === "literal" ? typeof narrow.values[0] === "number" : narrow.kind === "int" && inRange(wide.range, narrow.range);
    case "float":
      return narrow.kind === "float" || takes({ kind: "int" }, narrow);
    case "str":
      return narrow.kind === "str" || (narrow.kind === "literal" && typeof narrow.values[0] === "string");
    case "literal":
      return narrow.kind === "literal" && narrow.values.every((value) => wide.values.includes(value));
    case "list":
      // A set and a tuple are arrays on the wire as well.
      if (narrow.kind === "tuple") return narrow.items.every((item) => takes(wide.item, item));
      return (narrow.kind === "list" || narrow.kind === "set") && takes(wide.item, narrow.item);
    case "set":
      return narrow.kind === "set" && takes(wide.item, narrow.item);
    case "tuple":
      return (
        narrow.kind === "tuple" &&
        narrow.items.length === wide.items.length &&
        wide.items.every((item, i) => takes(item, narrow.items[i] ?? { kind: "none" }))
      );
    case "map":
      return narrow.kind === "map" && takes(wide.key, narrow.key) && takes(wide.value, narrow.value);
    case "struct":
    case "imported":
      // One source knows the definition of what another one only imports.
      return (narrow.kind === "struct" || narrow.kind === "imported") && narrow.name === wide.name;
    default:
      return spellType(wide) === spellType(narrow);
  }
}

/** Python does not say a range, so that it agrees with any. */
function inRange(wide: IntegerRange | undefined, narrow: IntegerRange | undefined): boolean {
  if (wide === undefined || narrow === undefined) return true;
  return ranges[wide][0] <= ranges[narrow][0] && ranges[wide][1] >= ranges[narrow][1];
}
