import type { Operation, RefusedValue } from "../../../generated/tokenspeed/operations.ts";
import { EngineWireError } from "../../wire/errors.ts";

type Request = Readonly<Record<string, unknown>>;

/** Throws `refused` for a value that wedges an engine, or that no engine can use; the schema says which and why. */
export function refuseValues(operation: Operation, request: object): void {
  for (const rule of operation.refuses) {
    const found = finding(rule, request as Request);
    if (found === undefined) continue;
    throw new EngineWireError("refused", `${operation.name} was not sent: ${found}. ${sentence(rule.because)}`, {
      operation: operation.name,
      path: `${operation.request}.${rule.field}`,
      found,
    });
  }
}

/** What is wrong with a value, or `undefined`. Values of the wrong type are left to the encoder. */
function finding(rule: RefusedValue, request: Request): string | undefined {
  const { field, when } = rule;
  const value = request[field];
  const list: readonly unknown[] = Array.isArray(value) ? value : [];
  const other = rule.other === undefined ? undefined : request[rule.other];
  switch (when) {
    case "empty":
      return value === "" || (Array.isArray(value) && value.length === 0) ? `${field} is empty` : undefined;
    case "an item is empty":
      return at(field, list, (item) => item === "", "is empty");
    case "an item is not one of":
      return at(
        field,
        list,
        (item) => typeof item === "string" && !rule.values?.includes(item),
        `is not one of ${rule.values?.join(", ")}`,
      );
    case "an item is below":
      return at(field, list.flat(), (item) => below(item, rule.limit), `is below ${rule.limit}`, "an item of ");
    case "below":
      return below(value, rule.limit) ? `${field} is below ${rule.limit}` : undefined;
    case "above":
      return below(rule.limit, value) ? `${field} is above ${rule.limit}` : undefined;
    case "not below":
      return isNumeric(value) && isNumeric(other) && value >= other ? `${field} is ${value} and ${rule.other} is ${other}` : undefined;
    case "of another length than":
      if (!Array.isArray(value) || !Array.isArray(other) || value.length === other.length) return undefined;
      return `${field} has ${value.length} items and ${rule.other} has ${other.length}`;
    case "set without":
      return isSet(value) && !isSet(other) ? `${field} is set without ${rule.other}` : undefined;
    default:
      return undefined;
  }
}

function at(
  field: string,
  items: readonly unknown[],
  wrong: (item: unknown) => boolean,
  what: string,
  prefix?: string,
): string | undefined {
  const index = items.findIndex(wrong);
  if (index < 0) return undefined;
  return prefix === undefined ? `${field}[${index}] ${what}` : `${prefix}${field} ${what}`;
}

function isNumeric(value: unknown): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

function below(value: unknown, limit: unknown): boolean {
  return isNumeric(value) && isNumeric(limit) && value < limit;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false;
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
