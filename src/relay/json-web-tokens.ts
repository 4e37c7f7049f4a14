import type { JWTPayload, JWTVerifyGetKey } from "jose";
import { EngineWireError } from "../wire/errors.ts";
import { isLoopback } from "./addresses.ts";
import type { Authenticate, Identity } from "./identity.ts";
import { loadPeer } from "./peer.ts";
import { isScope } from "./scopes.ts";

/** How JSON Web Tokens are checked. */
export interface JsonWebTokenOptions {
  /** Where the keys are published, such as `https://issuer.example/.well-known/jwks.json`, or the key set itself. */
  readonly keys: string | { readonly keys: readonly object[] };
  /** Whom they must be for (`aud`). */
  readonly audience: string;
  /** Who must have issued them (`iss`). */
  readonly issuer: string;
  /** Algorithms that are accepted; `none` and shared secrets never are. Default the usual ones with a public key. */
  readonly algorithms?: readonly string[];
  /** Accepts each token (`jti`) for one connection only, so that one that was overheard is worthless. Default false. */
  readonly singleUse?: boolean;
}

const publicKeyAlgorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"];

/**
 * Accepts JSON Web Tokens, checked by `jose`. They must expire. `sub` is the name, `scope` the scopes separated by spaces
 * (those of other services are passed over), `engines` the engines, where it is there. Throws `transport_unavailable` where
 * `jose` is not installed, and `invalid_argument`.
 */
export async function jsonWebTokens(options: JsonWebTokenOptions): Promise<Authenticate> {
  const { keys, audience, issuer, algorithms = publicKeyAlgorithms, singleUse = false } = options;
  for (const [name, value] of Object.entries({ audience, issuer })) {
    if (typeof value !== "string" || value === "") throw new EngineWireError("invalid_argument", `${name} must be given`, { path: name });
  }
  const foreign = algorithms.find((algorithm) => !publicKeyAlgorithms.includes(algorithm));
  if (foreign !== undefined)
    throw new EngineWireError("invalid_argument", `algorithms cannot have ${foreign}; they are ${publicKeyAlgorithms.join(", ")}`, {
      path: "algorithms",
    });
  if (typeof keys === "string" && !isTrustworthy(keys))
    throw new EngineWireError("invalid_argument", "keys must be an https URL: whoever can change them can let anybody in", {
      path: "keys",
    });
  const jose = await loadPeer("jose", () => import("jose"));
  const key: JWTVerifyGetKey =
    typeof keys === "string"
      ? jose.createRemoteJWKSet(new URL(keys))
      : jose.createLocalJWKSet(keys as Parameters<typeof jose.createLocalJWKSet>[0]);
  const used = new UsedTokens();
  return async ({ token }) => {
    if (token === undefined) return undefined;
    const { payload } = await jose.jwtVerify(token, key, {
      audience,
      issuer,
      algorithms: [...algorithms],
      requiredClaims: ["exp", "sub", ...(singleUse ? ["jti"] : [])],
      clockTolerance: 5,
    });
    if (singleUse && !used.take(String(payload.jti), (payload.exp ?? 0) * 1000)) throw new Error("the token was used before");
    return identityOf(payload);
  };
}

/** Whether nobody on the way can change what a URL gives: https, or this machine. */
function isTrustworthy(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname.replace(/^\[|\]$/g, "")));
}

function identityOf({ sub, exp, scope, engines }: JWTPayload): Identity {
  const granted = typeof scope === "string" ? scope.split(" ").filter(isScope) : [];
  return {
    name: sub ?? "",
    scopes: granted,
    expiresAt: (exp ?? 0) * 1000,
    // checked with the identity: a claim of another shape must not become "all engines"
    ...(engines !== undefined && { engines: engines as readonly number[] }),
  };
}

/** Tokens that were used and have not expired. */
class UsedTokens {
  readonly #expiry = new Map<string, number>();

  take(id: string, expiresAt: number): boolean {
    const now = Date.now();
    if (this.#expiry.has(id)) return false;
    // what has expired is refused without this; tokens of one issuer expire about in the order of their use
    for (const [old, at] of this.#expiry) {
      if (at > now) break;
      this.#expiry.delete(old);
    }
    this.#expiry.set(id, expiresAt + 10_000);
    return true;
  }
}
