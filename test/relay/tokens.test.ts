import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Identity, jsonWebTokens, staticTokens } from "../../src/relay/index.ts";
import { serveSimulated } from "../contract/relayed-group.ts";
import { failureOf } from "../faults/scripted-group.ts";

const address = "127.0.0.1";
const trainer = { name: "trainer", token: "a-token-of-some-length", scopes: ["read", "weights"], engines: [0] };
// SHA-256 of another-token-of-some-length
const reader = { name: "reader", sha256: "", scopes: ["read"], expiresAt: "2999-01-01T00:00:00Z" };
reader.sha256 = (await import("node:crypto")).createHash("sha256").update("another-token-of-some-length").digest("hex");

function tokenFile(text: string): { readonly file: string; readonly write: (next: string) => void } {
  const folder = mkdtempSync(joinPath(tmpdir(), "enginewire-tokens-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = joinPath(folder, "tokens.json");
  writeFileSync(file, text);
  return { file, write: (next) => writeFileSync(file, next) };
}

describe("tokens of a file", () => {
  it("let in whom they name, by token or digest", async () => {
    const { authenticate } = await staticTokens(tokenFile(JSON.stringify({ tokens: [trainer, reader] })));
    expect(authenticate({ address, token: "a-token-of-some-length" })).toMatchObject({
      name: "trainer",
      scopes: ["read", "weights"],
      engines: [0],
    });
    expect(authenticate({ address, token: "another-token-of-some-length" })).toMatchObject({
      name: "reader",
      expiresAt: Date.parse("2999-01-01"),
    });
    for (const token of [undefined, "", "a-token-of-some-lengtH", "a-token-of-some-length ", reader.sha256]) {
      expect(authenticate({ address, ...(token !== undefined && { token }) })).toBeUndefined();
    }
  });

  it("may stand in the environment", async () => {
    process.env.ENGINEWIRE_TEST_TOKENS = JSON.stringify({ tokens: [trainer] });
    const { authenticate } = await staticTokens({ environment: "ENGINEWIRE_TEST_TOKENS" });
    expect(authenticate({ address, token: trainer.token })).toMatchObject({ name: "trainer" });
    delete process.env.ENGINEWIRE_TEST_TOKENS;
    expect((await failureOf(staticTokens({ environment: "ENGINEWIRE_TEST_TOKENS" }))).code).toBe("invalid_argument");
  });

  it.each([
    ["no JSON", "{ s3cret-and-long-enough"],
    ["another shape", '["s3cret-and-long-enough"]'],
    ["a scope that there is not", JSON.stringify({ tokens: [{ ...trainer, token: "s3cret-and-long-enough", scopes: ["root"] }] })],
    ["a token that can be guessed", JSON.stringify({ tokens: [{ ...trainer, token: "s3cret" }] })],
    ["both a token and a digest", JSON.stringify({ tokens: [{ ...reader, token: "s3cret-and-long-enough" }] })],
    ["a misspelt property", JSON.stringify({ tokens: [{ ...trainer, token: "s3cret-and-long-enough", engine: [1] }] })],
  ])("are refused with %s, and not quoted", async (_, text) => {
    const failure = await failureOf(staticTokens(tokenFile(text)));
    expect(failure.code).toBe("invalid_argument");
    expect(failure.message).not.toContain("s3cret");
  });

  it("read anew, end the connections of those that are gone or changed, and no others", async () => {
    const text = (...tokens: object[]) => JSON.stringify({ tokens });
    const { file, write } = tokenFile(text(trainer, reader, { ...trainer, name: "other", token: "a-third-token-of-length" }));
    const tokens = await staticTokens({ file });
    const { join } = await serveSimulated({}, { authenticate: tokens.authenticate });
    const [gone, stays, changed] = await Promise.all(
      ["a-token-of-some-length", "another-token-of-some-length", "a-third-token-of-length"].map((token) => join({ token })),
    );
    write("{");
    expect(() => tokens.reload()).toThrow("invalid_argument");
    expect(await stays?.client.isSleeping()).toHaveLength(1);
    write(text(reader, { ...trainer, name: "other", token: "a-third-token-of-length", scopes: ["read"] }));
    tokens.reload();
    expect((await gone?.connection.closed)?.error?.code).toBe("unauthenticated");
    await changed?.connection.closed;
    expect(await stays?.client.isSleeping()).toHaveLength(1);
    expect((await failureOf(join({ token: trainer.token }))).code).toBe("unauthenticated");
    expect((await join({ token: "a-third-token-of-length" })).connection.scopes).toEqual(["read"]);
  });
});

describe("JSON Web Tokens", async () => {
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const { privateKey: foreignKey } = await generateKeyPair("ES256");
  const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: "k", alg: "ES256" }] };
  const settings = { keys, issuer: "https://issuer.example", audience: "relay" };
  const token = (claims: object = {}, key = privateKey, exp: number | string = "1h") =>
    new SignJWT({ scope: "read weights email", ...claims })
      .setProtectedHeader({ alg: "ES256", kid: "k" })
      .setIssuer("https://issuer.example")
      .setAudience("relay")
      .setSubject("trainer")
      .setJti("one")
      .setExpirationTime(exp)
      .sign(key);
  const claim = async (options: object, text: string): Promise<Identity | undefined> =>
    (await jsonWebTokens({ ...settings, ...options }))({ address, token: text });

  it("give a name, scopes, engines and an end", async () => {
    const identity = await claim({}, await token({ engines: [1] }));
    expect(identity).toMatchObject({ name: "trainer", scopes: ["read", "weights"], engines: [1] });
    expect(identity?.expiresAt).toBeGreaterThan(Date.now() + 3_000_000);
  });

  it("are refused when expired, of another issuer, for another audience, signed by another key or not at all, or without an end", async () => {
    const text = await token();
    await expect(claim({}, await token({}, privateKey, Math.floor(Date.now() / 1000) - 60))).rejects.toThrow("exp");
    await expect(claim({ issuer: "https://other.example" }, text)).rejects.toThrow("iss");
    await expect(claim({ audience: "other" }, text)).rejects.toThrow("aud");
    await expect(claim({}, await token({}, foreignKey))).rejects.toThrow("signature");
    const [, payload] = text.split(".");
    const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${payload}.`;
    await expect(claim({}, none)).rejects.toThrow();
    const endless = await new SignJWT({ scope: "read" })
      .setProtectedHeader({ alg: "ES256", kid: "k" })
      .setIssuer("https://issuer.example")
      .setAudience("relay")
      .setSubject("x")
      .sign(privateKey);
    await expect(claim({}, endless)).rejects.toThrow("exp");
  });

  it("are refused by the relay when they were replayed, where each is for one connection", async () => {
    const authenticate = await jsonWebTokens({ ...settings, singleUse: true });
    const { join } = await serveSimulated({}, { authenticate });
    const text = await token();
    await (await join({ token: text })).client.isSleeping();
    expect((await failureOf(join({ token: text }))).code).toBe("unauthenticated");
  });

  it("are checked with keys that are published, fetched when they are needed", async () => {
    let asked = 0;
    const server = createServer((_, response) => {
      asked++;
      response.setHeader("content-type", "application/json").end(JSON.stringify(settings.keys));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const authenticate = await jsonWebTokens({ ...settings, keys: `http://127.0.0.1:${port}/jwks.json` });
    expect(asked).toBe(0);
    const text = await token();
    for (let times = 0; times < 3; times++) expect(await authenticate({ address, token: text })).toMatchObject({ name: "trainer" });
    expect(asked).toBe(1);
  });

  it("with engines of another shape let nobody in", async () => {
    const { join } = await serveSimulated({}, { authenticate: await jsonWebTokens(settings) });
    expect((await failureOf(join({ token: await token({ engines: null }) }))).code).toBe("unauthenticated");
  });

  it("take no shared secrets", async () => {
    expect(await failureOf(jsonWebTokens({ ...settings, algorithms: ["HS256"] }))).toMatchObject({
      code: "invalid_argument",
      path: "algorithms",
    });
    expect((await failureOf(jsonWebTokens({ ...settings, audience: "" }))).path).toBe("audience");
  });

  it("take keys from where nobody on the way can change them", async () => {
    for (const keys of ["http://issuer.example/jwks.json", "file:///etc/keys", "issuer.example"])
      expect(await failureOf(jsonWebTokens({ ...settings, keys }))).toMatchObject({ code: "invalid_argument", path: "keys" });
    for (const keys of ["https://issuer.example/jwks.json", "http://127.0.0.1:8080/jwks.json", "http://[::1]/jwks.json"])
      expect(await jsonWebTokens({ ...settings, keys })).toBeTypeOf("function");
  });
});
