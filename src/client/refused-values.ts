import type { Operation } from "../../generated/tokenspeed/operations.ts";
import { EngineWireError } from "../wire/errors.ts";

/** Throws `refused` for a value that an engine accepts and that then wedges it; the schema says which and why. */
export function refuseValues(operation: Operation, request: object): void {
  for (const { field, when, because } of operation.refuses) {
    const value = (request as Readonly<Record<string, unknown>>)[field];
    if (!(Array.isArray(value) && value.length === 0)) continue;
    throw new EngineWireError("refused", `${operation.name} was not sent: ${field} is ${when}, and ${because}`, {
      operation: operation.name,
      path: `${operation.request}.${field}`,
      found: "an empty list",
    });
  }
}
