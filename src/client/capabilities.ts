import { type Operation, type OperationName, operations } from "../../generated/tokenspeed/operations.ts";
import { type EngineCapabilities, unsupportedBecause } from "../transport/capabilities.ts";
import type { Connection } from "../transport/connection.ts";

/** What a group of engines can be asked for. */
export interface ClientCapabilities {
  /** Each engine, in index order, with the operations it can be asked for. */
  readonly engines: readonly (EngineCapabilities & { readonly engine: number; readonly operations: readonly OperationName[] })[];
  /** The operations that all of them can be asked for. */
  readonly operations: readonly OperationName[];
}

/** Reads the capabilities off a connection's engines. */
export function capabilitiesOf(connection: Connection): ClientCapabilities {
  const engines = connection.engines.map(({ index, capabilities }) => ({
    ...capabilities,
    engine: index,
    operations: supported(capabilities),
  }));
  const all = Object.keys(operations) as OperationName[];
  return { engines, operations: all.filter((name) => engines.every((engine) => engine.operations.includes(name))) };
}

function supported(capabilities: EngineCapabilities): OperationName[] {
  return Object.values<Operation>(operations)
    .filter((operation) => unsupportedBecause(capabilities, operation) === undefined)
    .map(({ name }) => name as OperationName);
}
