import type { Operation } from "../../generated/tokenspeed/operations.ts";
import type { GenerateRequest } from "../transport/generation.ts";
import { EngineWireError } from "../wire/errors.ts";

/**
 * What a credential can allow. Effects of operations, as the schema has them; `generate`: token streams; `metrics`: reading
 * `/metrics`; `unguarded`: calls past the guard; `unpickle`: operations whose bytes an engine unpickles, which is as good as a
 * shell on it, and fields of a request to generate that have the engine run, open or call what the client names.
 */
export type Scope = Operation["effect"] | "generate" | "metrics" | "unguarded" | "unpickle";

const all: Readonly<Record<Scope, true>> = {
  read: true,
  admission: true,
  memory: true,
  weights: true,
  profile: true,
  generate: true,
  metrics: true,
  unguarded: true,
  unpickle: true,
};

/** Every scope. */
export const scopes: readonly Scope[] = Object.keys(all) as Scope[];

/** Whether a word names a scope. */
export function isScope(word: unknown): word is Scope {
  return typeof word === "string" && Object.hasOwn(all, word);
}

/** What a call of an operation needs. */
export function scopesFor(operation: Operation, guarded: boolean): readonly Scope[] {
  return [operation.effect, ...(operation.unpickles ? (["unpickle"] as const) : []), ...(guarded ? [] : (["unguarded"] as const))];
}

/** What a request to generate needs: a scope more where it would have the engine run, open or call what the client names. */
export function scopesForGeneration(request: GenerateRequest): readonly Scope[] {
  const { customLogitProcessor = null, bootstrapHost = null, multimodalInputs = null } = request;
  const shared = multimodalInputs?.mmItems.some(
    ({ featureShm = null, encodeHandshake = null }) => featureShm !== null || encodeHandshake !== null,
  );
  return customLogitProcessor !== null || bootstrapHost !== null || shared ? ["generate", "unpickle"] : ["generate"];
}

/** Throws `forbidden` where a credential lacks a scope that a call needs. */
export function requireScopes(what: string, needed: readonly Scope[], granted: readonly Scope[]): void {
  const missing = needed.find((scope) => !granted.includes(scope));
  if (missing === undefined) return;
  throw new EngineWireError("forbidden", `${what} was not sent: the credential lacks the scope ${missing}`, {
    operation: what,
    stage: "queue",
    found: missing,
  });
}
