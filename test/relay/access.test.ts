import { describe, expect, it } from "vitest";
import { type AuditEntry, type Identity, scopes } from "../../src/relay/index.ts";
import { tokenPrefix } from "../../src/transport/relay/protocol.ts";
import { serveSimulated } from "../contract/relayed-group.ts";
import { failureOf } from "../faults/scripted-group.ts";
import { RawClient } from "./raw-client.ts";

const identities: Readonly<Record<string, Identity>> = {
  reader: { name: "reader", scopes: ["read"] },
  pauser: { name: "pauser", scopes: ["read", "admission"], engines: [1] },
  "over-the-top": { name: "root", scopes },
};
const authenticate = ({ token }: { readonly token?: string }) => identities[token ?? ""];

describe("scopes", () => {
  it("a call beyond the credential is forbidden, audited and never sent", async () => {
    const audit: AuditEntry[] = [];
    const { join, engine } = await serveSimulated({ ranks: 2 }, { authenticate, audit: { write: (entry) => audit.push(entry) } });
    const { client, connection } = await join({ token: "reader", client: "a test" });
    expect(connection.scopes).toEqual(["read"]);
    expect(connection.identity).toBe("reader");
    await client.isSleeping();
    const failure = await failureOf(client.pauseScheduler({ mode: "abort" }));
    expect(failure).toMatchObject({ code: "forbidden", operation: "pauseScheduler", found: "admission" });
    expect(engine.state(0).received.has("PauseScheduler")).toBe(false);
    expect(audit).toMatchObject([
      {
        type: "denied",
        who: "reader",
        client: "a test",
        address: "127.0.0.1",
        operation: "pauseScheduler",
        outcome: "forbidden",
        request: { mode: "abort" },
      },
    ]);
  });

  it("passing the guard, and bytes that an engine unpickles, need scopes of their own", async () => {
    const { join, engine } = await serveSimulated(
      {},
      { authenticate: () => ({ name: "almost", scopes: ["read", "admission", "weights"] }) },
    );
    const { client } = await join();
    expect(await failureOf(client.resumeScheduler({}, { guard: false }))).toMatchObject({ code: "forbidden", found: "unguarded" });
    const tensors = { serializedNamedTensors: [Uint8Array.of(0x80, 0x04)], loadFormat: null, flushCache: true };
    expect(await failureOf(client.updateWeightsFromTensor(tensors))).toMatchObject({ code: "forbidden", found: "unpickle" });
    expect([...engine.state(0).received.keys()]).toEqual(["IsSchedulerPaused"]);
  });

  it("a credential for some engines sees, hears and calls only these", async () => {
    const { join } = await serveSimulated({ ranks: 2 }, { authenticate });
    const { client, connection } = await join({ token: "pauser" });
    expect(connection.engines.map(({ index }) => index)).toEqual([1]);
    expect(await client.resumeScheduler()).toMatchObject([{ engine: 1 }]);
    expect(await failureOf(client.isSleeping({}, { engines: [0] }))).toMatchObject({ code: "forbidden", engine: 0 });
  });
});

describe("credentials", () => {
  it.each([
    ["none", undefined],
    ["a wrong one", "guess"],
  ])("%s is refused, audited, and no reason to try again", async (_, token) => {
    const audit: AuditEntry[] = [];
    const { join, relay } = await serveSimulated({}, { authenticate, audit: { write: (entry) => audit.push(entry) } });
    expect((await failureOf(join(token === undefined ? {} : { token }))).code).toBe("unauthenticated");
    await expect.poll(() => relay.clients).toBe(0);
    expect(audit).toMatchObject([{ type: "refused", outcome: "unauthenticated" }]);
    expect(JSON.stringify(audit)).not.toContain("guess");
  });

  it("what authenticate throws is logged and not told", async () => {
    const log: unknown[] = [];
    const options = {
      authenticate: () => {
        throw new Error("the database says s3cret");
      },
      log: (entry: unknown) => log.push(entry),
    };
    const { join } = await serveSimulated({}, options);
    const failure = await failureOf(join({ token: "x" }));
    expect(failure.code).toBe("unauthenticated");
    expect(failure.message).not.toContain("s3cret");
    expect(log).toMatchObject([{ level: "warn", error: { message: "the database says s3cret" } }]);
  });

  it("one that expires lets calls under way end, and the client goes on with a fresh one", async () => {
    let lifetimeMs = 300;
    const issue = (): Identity => ({ name: "brief", scopes: ["read", "admission"], expiresAt: Date.now() + lifetimeMs });
    const { join } = await serveSimulated({ lateReply: [{ op: "ResumeScheduler", times: 1, ms: 700 }] }, { authenticate: issue });
    const { client, connection } = await join({ token: async () => "t" });
    const seen: string[] = [];
    const watching = (async () => {
      for await (const { state } of connection.status()) seen.push(state);
    })();
    lifetimeMs = 60_000;
    const [resumed] = await client.resumeScheduler({}, { timeoutMs: 20_000 });
    expect(resumed?.reply.success).toBe(true);
    expect(await client.isSleeping()).toHaveLength(1);
    await connection.close();
    await watching;
    expect(seen).toEqual(["open", "waiting", "connecting", "open", "closed"]);
  });

  it("one that is withdrawn ends its connection at once", async () => {
    const withdrawn = new AbortController();
    const { join } = await serveSimulated({}, { authenticate: () => ({ name: "x", scopes: ["read"], withdrawn: withdrawn.signal }) });
    const { connection } = await join({ token: "t" });
    withdrawn.abort();
    expect((await connection.closed).error?.code).toBe("unauthenticated");
  });

  it("W04 a token of every ASCII character arrives by either way, and is in no URL, log or error", async () => {
    const odd = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)).join("");
    const seen: (string | undefined)[] = [];
    const log: unknown[] = [];
    const { join, relay } = await serveSimulated(
      {},
      {
        authenticate: ({ token }) => {
          seen.push(token);
          return token === odd ? { name: "odd", scopes: ["read"] } : undefined;
        },
        log: (entry) => log.push(entry),
      },
    );
    await join({ token: odd });
    const client = new RawClient(relay.url, {}, ["enginewire.v1", `${tokenPrefix}${Buffer.from(odd).toString("base64url")}`]);
    await client.opened();
    // only the application's protocol is echoed, never the token
    expect(client.socket.protocol).toBe("enginewire.v1");
    await client.hello();
    expect(seen).toEqual([odd, odd]);
    expect(log).toEqual([]);
    expect(relay.url).not.toContain("token");
  });

  it("without a first message, the handshake ends at its deadline", async () => {
    const { relay } = await serveSimulated({}, { limits: { handshakeMs: 100 } });
    const client = await new RawClient(relay.url).opened();
    expect((await client.closed).code).toBe(4408);
  });

  it("an authenticate that never answers ends at the same deadline", async () => {
    const { relay } = await serveSimulated({}, { limits: { handshakeMs: 100 }, authenticate: () => new Promise(() => {}) });
    const client = new RawClient(relay.url);
    await expect(client.hello("x")).rejects.toThrow("closed");
    expect((await client.closed).code).toBe(4408);
  });

  it("a version that the relay does not speak is refused as such", async () => {
    const { relay } = await serveSimulated();
    const client = await new RawClient(relay.url).opened();
    const { encodeHello } = await import("../../generated/relay/encoders.ts");
    client.socket.send(encodeHello({ versions: [2, 3] }));
    expect(await client.take(({ $tag }) => $tag === "Refused")).toMatchObject({
      id: null,
      failure: { code: "version_mismatch", found: "2, 3" },
    });
    expect((await client.closed).code).toBe(4406);
  });
});

describe("W03 pages", () => {
  const cases: readonly [host: string, origin: string | undefined, status: number | undefined][] = [
    ["127.0.0.1:PORT", undefined, undefined],
    ["127.0.0.1:PORT", "http://127.0.0.1:PORT", undefined],
    ["localhost:PORT", "http://localhost:PORT", undefined],
    ["relay.example", "https://relay.example", undefined],
    ["relay.example", "https://console.example", undefined],
    ["127.0.0.1:PORT", "http://127.0.0.1:1", 403],
    ["127.0.0.1:PORT", "http://evil.example", 403],
    ["127.0.0.1:PORT", "http://127.0.0.1:PORT.evil.example", 403],
    ["127.0.0.1:PORT", "null", 403],
    ["relay.example", "https://console.example.evil.example", 403],
    ["relay.example", "https://CONSOLE.example", 403],
    ["evil.example:PORT", "http://evil.example:PORT", 403],
    ["evil.example:PORT", undefined, 403],
    ["relay.example.evil.example", undefined, 403],
    ["a b", undefined, 403],
  ];
  it.each(cases)("host %s, origin %s: %s", async (host, origin, status) => {
    const { relay } = await serveSimulated({}, { hosts: ["relay.example"], origins: ["https://console.example"] });
    const { port } = new URL(relay.url);
    const fill = (text: string) => text.replaceAll("PORT", port);
    const client = new RawClient(relay.url, { headers: { Host: fill(host) }, ...(origin !== undefined && { origin: fill(origin) }) });
    if (status === undefined) await client.hello();
    else await expect(client.opened()).rejects.toThrow(`HTTP ${status}`);
  });

  it("a client that is no page is kept out where that is asked for", async () => {
    const { relay } = await serveSimulated({}, { requireOrigin: true });
    await expect(new RawClient(relay.url).opened()).rejects.toThrow("HTTP 403");
  });
});

it("an address of the network without authentication is refused, unless a long flag says so", async () => {
  const { near } = await serveSimulated();
  const { serve } = await import("../../src/relay/index.ts");
  expect(await failureOf(serve(near.connection, { host: "0.0.0.0", port: 0 }))).toMatchObject({
    code: "invalid_argument",
    path: "authenticate",
  });
  await (await serve(near.connection, { host: "0.0.0.0", port: 0, authenticate: () => undefined })).close();
  await (await serve(near.connection, { host: "0.0.0.0", port: 0, allowAnyoneOnTheNetworkWithoutAuthentication: true })).close();
});
