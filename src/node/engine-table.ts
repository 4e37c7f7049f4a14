import type { Operation } from "../../generated/tokenspeed/operations.ts";
import type { EngineCoreReadyResponse } from "../messages.ts";
import { type EngineCapabilities, lackedBy, releaseOf, unsupportedBecause } from "../transport/capabilities.ts";
import { dropTrailing } from "../wire/drop-trailing.ts";
import { EngineWireError } from "../wire/errors.ts";
import type { Call } from "./call.ts";
import { identityOf, type Registered } from "./handshake.ts";
import { SlimDialect } from "./slim-dialect.ts";

/** What a connection knows of an engine. */
export interface Engine {
  readonly index: number;
  readonly identity: Uint8Array;
  readonly registration: EngineCoreReadyResponse;
  /** Puts the second control dialect on and off, where the engine speaks it. */
  readonly slim?: SlimDialect;
  capabilities: EngineCapabilities;
  /** Why it is dead. */
  death?: EngineWireError;
}

/** The engines of a connection, and what each of them can be asked. */
export class EngineTable {
  /** Ascending. */
  readonly indices: readonly number[];
  readonly #engines = new Map<number, Engine>();

  /** `release` is what the caller says theirs is, in place of what they registered. */
  constructor(registered: ReadonlyMap<number, Registered>, release: string | undefined) {
    for (const [index, { registration, dialect }] of registered) {
      const known = release ?? releaseOf(registration.vllmVersion);
      const capabilities = { control: true, dialect, ...(known !== undefined && { release: known }) };
      const slim = dialect === "slim" ? { slim: new SlimDialect() } : {};
      this.#engines.set(index, { index, identity: identityOf(index), registration, capabilities, ...slim });
    }
    this.indices = [...this.#engines.keys()];
  }

  /** In index order. */
  [Symbol.iterator](): Iterator<Engine> {
    return this.#engines.values();
  }

  get(index: number): Engine | undefined {
    return this.#engines.get(index);
  }

  /** Which engines a call goes to, ascending. Throws `invalid_argument`. */
  addressed(operation: Operation, engines: readonly number[] | undefined): readonly number[] {
    const all = this.indices;
    if (engines === undefined) return all;
    const invalid = (why: string): EngineWireError =>
      new EngineWireError("invalid_argument", `${operation.name}: engines ${why}`, { operation: operation.name, path: "engines" });
    const chosen = new Set<number>(engines);
    for (const engine of chosen) if (!this.#engines.has(engine)) throw invalid(`has ${engine}, and this connection has ${all.join(", ")}`);
    if (operation.answers === "gated" && chosen.size < all.length) {
      throw invalid(`must be all of ${all.join(", ")}: a gated operation is answered only when every engine of the group holds it`);
    }
    return all.filter((engine) => chosen.has(engine));
  }

  /** Refuses a call that an engine could not answer. Throws `unsupported`, `engine_dead`. */
  checkUsable(operation: Operation, engines: readonly number[]): void {
    const details = { operation: operation.name, stage: "queue" };
    for (const index of engines) {
      const engine = this.#engines.get(index);
      const unsupported = engine && unsupportedBecause(engine.capabilities, operation);
      if (unsupported !== undefined) {
        const message = `${operation.name} was not sent: engine ${index} cannot do it, for ${unsupported}`;
        throw new EngineWireError("unsupported", message, { ...details, engine: index });
      }
      const cause = engine?.death;
      if (cause === undefined) continue;
      const message = `${operation.name} was not sent: engine ${index} is dead (${cause.message})`;
      throw new EngineWireError("engine_dead", message, { ...details, engine: index, cause, missing: engines });
    }
  }

  /** Refuses a field that an engine would ignore; `told` is the release the caller writes for. Throws `unsupported`. */
  checkFields(operation: Operation, request: object, engines: readonly number[], told: string | undefined): void {
    if (operation.lacks === undefined) return;
    for (const index of engines) {
      const release = told ?? this.#engines.get(index)?.capabilities.release;
      const field = lackedBy(release, operation).find((name) => (request as Readonly<Record<string, unknown>>)[name] !== undefined);
      if (field === undefined) continue;
      const why = `engine ${index} is of release ${release}, which does not know ${field} and would ignore it; leave it out`;
      throw new EngineWireError("unsupported", `${operation.name} was not sent: ${why}`, {
        operation: operation.name,
        stage: "queue",
        engine: index,
        path: `${operation.request}.${field}`,
      });
    }
  }
}

/** What is sent to an engine: without the fields that its release had not, in the dialect that it speaks. */
export function payloadFor({ capabilities, slim }: Engine, { operation, payload, release }: Call): Uint8Array {
  if (slim !== undefined) return slim.encode(operation, payload);
  const lacked = lackedBy(release ?? capabilities.release, operation).length;
  return lacked === 0 ? payload : dropTrailing(payload, lacked);
}
