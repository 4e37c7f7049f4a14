import { EngineWireError } from "../wire/errors.ts";

/** Throws `limit_exceeded` where a list or map anywhere in a value has more than `most` elements. */
export function checkLengths(value: unknown, most: number, path = ""): void {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return;
  if (Array.isArray(value)) {
    checkLength(value.length, most, path);
    for (const [index, item] of value.entries())
      if (typeof item === "object" && item !== null) checkLengths(item, most, `${path}[${index}]`);
    return;
  }
  if (value instanceof Map) {
    checkLength(value.size, most, path);
    for (const [key, item] of value) checkItem(item, most, path, key);
    return;
  }
  let length = 0;
  // decoded values have no prototype of anybody's making
  for (const key in value) {
    length++;
    checkItem((value as Readonly<Record<string, unknown>>)[key], most, path, key);
  }
  checkLength(length, most, path);
}

function checkItem(item: unknown, most: number, path: string, key: unknown): void {
  if (typeof item === "object" && item !== null) checkLengths(item, most, `${path}.${String(key).slice(0, 40)}`);
}

function checkLength(length: number, most: number, path: string): void {
  if (length <= most) return;
  throw new EngineWireError("limit_exceeded", `${path.replace(/^\./, "")} has ${length} elements, and this relay takes ${most}`, {
    path: "list_length",
    expected: `at most ${most}`,
    found: String(length),
  });
}
