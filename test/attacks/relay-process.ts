// The relay under attack, a process of its own, with its default limits, tokens of both kinds, metrics and an audit log.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { bind } from "../../src/node/index.ts";
import { auditFile, type Credential, jsonWebTokens, serve, staticTokens } from "../../src/relay/index.ts";
import { attackersStreams, engineCount, type RelayReport, tokens } from "./messages.ts";

const folder = mkdtempSync(join(tmpdir(), "enginewire-attacks-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const tokenFile = join(folder, "tokens.json");
const auditPath = join(folder, "audit.log");
const entry = (name: keyof typeof tokens, scopes: readonly string[], further = {}) => ({ name, token: tokens[name], scopes, ...further });
writeFileSync(
  tokenFile,
  JSON.stringify({
    tokens: [
      entry("client", ["read", "admission", "generate"]),
      entry("attacker", ["read", "generate", "admission"], { engines: [0, attackersStreams] }),
      entry("reader", ["read"]),
      entry("expired", ["read"], { expiresAt: "2020-01-01T00:00:00Z" }),
    ],
  }),
);

const { publicKey, privateKey } = await generateKeyPair("ES256");
const settings = { issuer: "https://issuer.example", audience: "relay", singleUse: true };
const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: "k", alg: "ES256" }] };
const [byFile, byKey] = await Promise.all([staticTokens({ file: tokenFile }), jsonWebTokens({ ...settings, keys })]);
const authenticate = (credential: Credential) => (credential.token?.includes(".") ? byKey(credential) : byFile.authenticate(credential));
const once = await new SignJWT({ scope: "read" })
  .setProtectedHeader({ alg: "ES256", kid: "k" })
  .setIssuer(settings.issuer)
  .setAudience(settings.audience)
  .setSubject("once")
  .setJti("once")
  .setExpirationTime("1h")
  .sign(privateKey);

const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: engineCount });
process.send?.({ handshake: listener.handshakeAddress });
const connection = await listener.accept({ timeoutMs: 60_000 });
const audit = auditFile(auditPath);
const relay = await serve(connection, { host: "127.0.0.1", port: 0, authenticate, audit, metrics: true });
// used up: what the attacker has is a replay
await authenticate({ token: once, address: "127.0.0.1" });
process.send?.({ url: relay.url, once });

process.on("message", () => {
  const inFlight = connection.engines.reduce((sum, engine) => sum + engine.inFlight, 0);
  const lines = readFileSync(auditPath, "utf8").trimEnd().split("\n").length;
  process.send?.({ clients: relay.clients, inFlight, auditLines: lines } satisfies RelayReport);
});
// the run has ended, however it did
process.on("disconnect", () => process.exit(0));
