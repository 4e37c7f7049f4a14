import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { EngineWireError } from "../wire/errors.ts";
import type { Authenticate, Identity } from "./identity.ts";
import { loadPeer } from "./peer.ts";
import { scopes } from "./scopes.ts";

/** Tokens that stand in a file or in an environment variable. */
export interface StaticTokens {
  /** What `serve` takes. */
  readonly authenticate: Authenticate;
  /**
   * Reads the tokens anew. Connections whose token is gone, or allows something else now, are ended. Throws `invalid_argument`,
   * and then keeps what it had.
   */
  reload(): void;
}

/** Where tokens stand. */
export type TokenSource = { readonly file: string } | { readonly environment: string };

interface Entry {
  /** The entry's text: what tells whether it is still the same. */
  readonly text: string;
  readonly digest: Buffer;
  readonly identity: Identity;
  readonly withdraw: AbortController;
}

/**
 * Reads tokens from a file, or from an environment variable that holds the same text:
 * `{ "tokens": [{ "name": "trainer", "token": "…", "scopes": ["read", "weights"], "engines": [0, 1], "expiresAt": "2027-01-01T00:00:00Z" }] }`.
 * In place of `token` there may be `sha256`, its digest in hexadecimal; `engines` and `expiresAt` may be left out. Needs `zod`.
 * Throws `invalid_argument` for what is not that, without quoting it, and `transport_unavailable`.
 */
export async function staticTokens(source: TokenSource): Promise<StaticTokens> {
  const parse = parser(await loadPeer("zod", () => import("zod")));
  const read = (): Entry[] => parse(textOf(source), "file" in source ? source.file : source.environment);
  let entries = read();
  return {
    authenticate: ({ token }) => {
      if (token === undefined) return undefined;
      const digest = createHash("sha256").update(token).digest();
      // all are compared, and digests have one length: the time tells nothing
      let found: Entry | undefined;
      for (const entry of entries) if (timingSafeEqual(entry.digest, digest)) found = entry;
      return found?.identity;
    },
    reload() {
      const fresh = read();
      const before = entries;
      entries = fresh.map((entry) => before.find(({ text }) => text === entry.text) ?? entry);
      for (const entry of before) if (!entries.includes(entry)) entry.withdraw.abort();
    },
  };
}

function textOf(source: TokenSource): string {
  if ("file" in source) {
    try {
      return readFileSync(source.file, "utf8");
    } catch (cause) {
      throw new EngineWireError("invalid_argument", `the tokens in ${source.file} cannot be read: ${(cause as Error).message}`, { cause });
    }
  }
  const text = process.env[source.environment];
  if (text === undefined) throw new EngineWireError("invalid_argument", `the environment has no ${source.environment}`);
  return text;
}

function parser(z: typeof import("zod")): (text: string, where: string) => Entry[] {
  const entry = z
    .strictObject({
      name: z.string().min(1).max(120),
      token: z.string().min(16, "has fewer than 16 characters, which can be guessed").optional(),
      sha256: z
        .string()
        .regex(/^[0-9a-f]{64}$/, "is no SHA-256 in hexadecimal")
        .optional(),
      scopes: z.array(z.enum(scopes as [(typeof scopes)[number]])),
      engines: z.array(z.int().min(0).max(65_535)).optional(),
      expiresAt: z.iso.datetime({ offset: true }).optional(),
    })
    .refine(({ token, sha256 }) => (token === undefined) !== (sha256 === undefined), "has to have either token or sha256");
  const file = z.strictObject({ tokens: z.array(entry) });
  return (text, where) => {
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      // the cause would quote the text
      throw new EngineWireError("invalid_argument", `the tokens in ${where} are no JSON`);
    }
    const result = file.safeParse(json);
    if (!result.success) {
      const problems = result.error.issues.map(({ path, message }) => `${path.join(".") || "the whole"} ${message}`).join("; ");
      throw new EngineWireError("invalid_argument", `the tokens in ${where}: ${problems}`);
    }
    return result.data.tokens.map(({ name, token, sha256, scopes, engines, expiresAt }) => {
      const withdraw = new AbortController();
      const digest =
        sha256 === undefined
          ? createHash("sha256")
              .update(token ?? "")
              .digest()
          : Buffer.from(sha256, "hex");
      const identity: Identity = {
        name,
        scopes,
        withdrawn: withdraw.signal,
        ...(engines !== undefined && { engines }),
        ...(expiresAt !== undefined && { expiresAt: Date.parse(expiresAt) }),
      };
      return { text: JSON.stringify({ digest: digest.toString("hex"), name, scopes, engines, expiresAt }), digest, identity, withdraw };
    });
  };
}
