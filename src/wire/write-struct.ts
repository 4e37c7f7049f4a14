import { Failure, kindOf } from "./failure.ts";

/** What an encoder is given for a struct must be an object. */
export function checkObject(init: unknown, field: string): asserts init is object {
  if (typeof init !== "object" || init === null || Array.isArray(init))
    throw new Failure("invalid_value", field, "an object", kindOf(init));
}

/**
 * Refuses an object with a property that the struct does not have, which is a misspelt one and must not silently mean a
 * default. Properties in the order of the struct, as most are, cost one comparison each; `$tag`, last among the names
 * since most callers leave it out, is looked up wherever it stands.
 */
export function checkProperties(init: unknown, properties: readonly string[]): asserts init is object {
  checkObject(init, "");
  let next = 0;
  let empty = true;
  for (const property in init) {
    empty = false;
    if (property === properties[next]) next++;
    else {
      const known = indexOf(properties, property);
      if (known < 0) throw unknownField(property, properties);
      if (property !== "$tag") next = known + 1;
    }
  }
  if (empty) checkEmpty(init, properties);
}

// Short lists of constants: a loop of pointer comparisons beats the call of the built-in method.
function indexOf(properties: readonly string[], property: string): number {
  const { length } = properties;
  for (let i = 0; i < length; i++) if (properties[i] === property) return i;
  return -1;
}

// An object without properties might be anything: a Map or a Date must not pass for a struct at its defaults.
function checkEmpty(init: object, properties: readonly string[]): void {
  const prototype: unknown = Object.getPrototypeOf(init);
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return;
  throw new Failure("invalid_value", "", `an object with some of the properties ${properties.join(", ")}`, kindOf(init));
}

/** A union's member whose tag is none of the union's. */
export function unknownUnionTag(field: string, expected: string, tag: unknown): Failure {
  return new Failure("unknown_tag", `${field}.$tag`, expected, kindOf(tag));
}

function unknownField(property: string, properties: readonly string[]): Failure {
  const nearest = nearestName(property, properties);
  const list = properties.length === 0 ? "it has none" : `it has ${properties.join(", ")}`;
  const advice =
    nearest === undefined ? `; ${list}; remove what it does not have` : `; did you mean ${JSON.stringify(nearest)}? Correct or remove it`;
  const shown = property.length > 40 ? `${property.slice(0, 40)}…` : property;
  return new Failure("unknown_field", shown, "a property of this struct", JSON.stringify(shown), undefined, advice);
}

/** A required field that is absent. */
export function missingField(field: string): Failure {
  return new Failure("missing_field", field, "a value, since it has no default", "undefined");
}

function nearestName(name: string, names: readonly string[]): string | undefined {
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  const wanted = plain(name.slice(0, 80));
  let nearest: string | undefined;
  let least = Math.max(2, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of names) {
    const distance = editDistance(wanted, plain(candidate));
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (previous[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1);
      row.push(Math.min(replaced, (previous[j] as number) + 1, (row[j - 1] as number) + 1));
    }
    previous = row;
  }
  return previous[to.length] as number;
}
