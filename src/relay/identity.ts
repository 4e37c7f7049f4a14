import { EngineWireError } from "../wire/errors.ts";
import { isScope, type Scope, scopes } from "./scopes.ts";

/** What a client shows to be let in. */
export interface Credential {
  /** The token of the first message or of the list of subprotocols; absent where it sent none. */
  readonly token?: string;
  /** The address it connects from. */
  readonly address: string;
  /** The page it comes from, where it is one. */
  readonly origin?: string;
}

/** Whom a credential names, and what it allows. */
export interface Identity {
  /** For the audit log and for those who wait behind this client's calls. */
  readonly name: string;
  /** What it may do. */
  readonly scopes: readonly Scope[];
  /** The engines it may call, by index. Default: all. */
  readonly engines?: readonly number[];
  /** When it ends, in milliseconds since 1970; calls under way are then finished, and no more are taken. Default: never. */
  readonly expiresAt?: number;
  /** Ends its connections at once when aborted: the credential was withdrawn. */
  readonly withdrawn?: AbortSignal;
}

/**
 * Decides about a credential: an identity lets the client in, `undefined` keeps it out, and so does throwing; what is thrown is
 * logged and not told to the client.
 */
export type Authenticate = (credential: Credential) => Identity | undefined | Promise<Identity | undefined>;

/** Whoever reaches a relay without authentication; none of the permissions that can wedge an engine or run code on it. */
export const anyone: Identity = {
  name: "anyone",
  scopes: scopes.filter((scope) => scope !== "unpickle" && scope !== "unguarded"),
};

/** Refuses what is no identity, as an `authenticate` in plain JavaScript may return. Throws `invalid_argument`. */
export function checkIdentity(identity: Identity): Identity {
  const { name, scopes: granted, engines, expiresAt } = identity;
  const wrong =
    typeof name !== "string" || name === "" || name.length > 200
      ? "name must be a text of 1 to 200 characters"
      : !Array.isArray(granted) || !granted.every(isScope)
        ? `scopes must be a list of ${scopes.join(", ")}`
        : engines !== undefined && !(Array.isArray(engines) && engines.every((engine) => Number.isInteger(engine)))
          ? "engines must be a list of indices"
          : expiresAt !== undefined && !Number.isFinite(expiresAt)
            ? "expiresAt must be milliseconds since 1970"
            : undefined;
  if (wrong === undefined) return identity;
  throw new EngineWireError("invalid_argument", `an identity's ${wrong}`, { path: wrong.split(" ")[0] ?? "" });
}
