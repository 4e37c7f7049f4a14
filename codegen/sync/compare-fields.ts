import type { Judged } from "./change.ts";
import { compareTypes, withoutNone } from "./compare-types.ts";
import { type ContractField, type ContractStruct, spellType, spellValue } from "./contract.ts";

/** A change of a field, not yet judged. */
export interface FieldChange extends Pick<Judged, "kind" | "hadDefault"> {
  readonly field?: string;
  readonly before?: string;
  readonly after?: string;
  readonly probably?: true;
  readonly at?: ContractField;
}

/** The name that a field is known by in both sources: its key in a map, else that of the engine's source. */
function identityOf(field: ContractField, { layout }: ContractStruct): string {
  return layout === "map" ? field.name : (field.python ?? field.name);
}

/** What differs between the fields of an old and a new struct. */
export function compareFields(old: ContractStruct, now: ContractStruct, documents: boolean): FieldChange[] {
  const before = new Map(old.fields.map((field) => [identityOf(field, old), field]));
  const after = new Map(now.fields.map((field) => [identityOf(field, now), field]));
  const renamed = findRenamed(before, after);
  const oldNames = [...before.keys()].map((name) => renamed.get(name) ?? name);
  const newNames = [...after.keys()];
  const changes: FieldChange[] = [];
  for (const [from, to] of renamed) {
    changes.push({ kind: "field renamed", field: to, before: from, after: to, probably: true, ...at(after.get(to)) });
  }
  changes.push(...comparePlaces(oldNames, newNames, now.layout, before, after));
  for (const [name, field] of before) {
    const other = after.get(renamed.get(name) ?? name);
    if (other !== undefined) changes.push(...compareField(renamed.get(name) ?? name, field, other, documents));
  }
  return changes;
}

type Fields = ReadonlyMap<string, ContractField>;

function at(field: ContractField | undefined): { readonly at?: ContractField } {
  return field === undefined ? {} : { at: field };
}

function spell({ type, default: value }: ContractField): string {
  return `${spellType(type)}${value === undefined ? "" : ` = ${spellValue(value)}`}`;
}

/** Fields that went, where one of the same type and default came between the same neighbours. */
function findRenamed(before: Fields, after: Fields): Map<string, string> {
  const neighbours = (names: readonly string[], others: Fields, i: number): string => {
    const common = (list: readonly string[]): string => list.find((name) => others.has(name)) ?? "";
    return `${common(names.slice(0, i).reverse())} ${common(names.slice(i + 1))}`;
  };
  const oldNames = [...before.keys()];
  const newNames = [...after.keys()];
  const renamed = new Map<string, string>();
  for (const [i, name] of oldNames.entries()) {
    const field = before.get(name);
    if (after.has(name) || field === undefined) continue;
    const place = neighbours(oldNames, after, i);
    const found = newNames.find((other, j) => {
      const candidate = after.get(other);
      if (before.has(other) || candidate === undefined || [...renamed.values()].includes(other)) return false;
      return neighbours(newNames, before, j) === place && spell(candidate) === spell(field);
    });
    if (found !== undefined) renamed.set(name, found);
  }
  return renamed;
}

function comparePlaces(
  oldNames: readonly string[],
  newNames: readonly string[],
  layout: "array" | "map",
  before: Fields,
  after: Fields,
): FieldChange[] {
  const changes: FieldChange[] = [];
  const kept = new Set(oldNames.filter((name) => newNames.includes(name)));
  const lastKeptOld = oldNames.findLastIndex((name) => kept.has(name));
  const lastKeptNew = newNames.findLastIndex((name) => kept.has(name));
  for (const [i, name] of oldNames.entries()) {
    const field = before.get(name);
    if (kept.has(name) || field === undefined) continue;
    // Nothing moves where it was last and nothing took its place.
    const last = layout === "map" || (i > lastKeptOld && i >= newNames.length);
    changes.push({
      kind: last ? "last field removed" : "field removed",
      field: name,
      before: spell(field),
      hadDefault: field.default !== undefined,
    });
  }
  const order = (names: readonly string[]): string[] => names.filter((name) => kept.has(name));
  if (order(oldNames).join() !== order(newNames).join()) {
    changes.push({ kind: "fields reordered", before: order(oldNames).join(", "), after: order(newNames).join(", ") });
  }
  for (const [i, name] of newNames.entries()) {
    const field = after.get(name);
    if (kept.has(name) || field === undefined) continue;
    const appended = layout === "map" || (i > lastKeptNew && i >= oldNames.length);
    const kind = field.default === undefined ? "field appended without default" : "field appended with default";
    changes.push({ kind: appended ? kind : "field inserted", field: name, after: spell(field), at: field });
  }
  return changes;
}

function compareField(name: string, old: ContractField, now: ContractField, documents: boolean): FieldChange[] {
  const changes: FieldChange[] = [];
  const [one, other] = [withoutNone(old.type), withoutNone(now.type)];
  const types = { field: name, before: spellType(old.type), after: spellType(now.type), at: now };
  if (one.nullable !== other.nullable && (one.named || other.named)) {
    changes.push({ kind: other.nullable ? "nullable added" : "nullable removed", ...types });
  }
  const change = compareTypes(one.type, other.type);
  if (change !== "same") changes.push({ kind: `type ${change}`, ...types });
  const [was, is] = [old.default, now.default];
  const values = {
    field: name,
    ...(was === undefined ? {} : { before: spellValue(was) }),
    ...(is === undefined ? {} : { after: spellValue(is) }),
    at: now,
  };
  if (was === undefined && is !== undefined) changes.push({ kind: "default added", ...values });
  else if (was !== undefined && is === undefined) changes.push({ kind: "default removed", ...values });
  else if (values.before !== values.after) changes.push({ kind: "default changed", ...values });
  if (documents && old.doc !== now.doc) {
    changes.push({ kind: "documentation changed", field: name, before: old.doc ?? "", after: now.doc ?? "", at: now });
  }
  return changes;
}
