import { describe, expect, it, onTestFinished } from "vitest";
import WebSocket from "ws";
import { createClient } from "../../src/index.ts";
import { serve } from "../../src/relay/index.ts";
import { connect, type RelayConnection } from "../../src/web/index.ts";
import { serveSimulated } from "../contract/relayed-group.ts";
import { failureOf } from "../faults/scripted-group.ts";
import { proxyOf } from "./proxy.ts";

/** Resolves when the link is, or was since it was asked, in a state. */
async function reaches(connection: RelayConnection, wanted: string): Promise<void> {
  for await (const { state } of connection.status()) if (state === wanted) return;
}

async function through(url: string, options = {}): Promise<RelayConnection> {
  const connection = await connect(url, { WebSocket, firstDelayMs: 20, longestDelayMs: 100, ...options });
  onTestFinished(() => connection.close());
  return connection;
}

describe("a loss of the relay", () => {
  it("rejects what was under way with outcome_unknown, never sends it again, and new calls go on", async () => {
    const { relay, engine } = await serveSimulated({ lateReply: [{ op: "FlushCache", times: 1, ms: 400 }] });
    const proxy = await proxyOf(relay.url);
    const client = createClient(await through(proxy.url));
    const flushing = failureOf(client.flushCache());
    await expect.poll(() => engine.state(0).received.get("FlushCache")).toBe(1);
    proxy.cut();
    expect(await flushing).toMatchObject({ code: "outcome_unknown", operation: "flushCache", stage: "reply", replies: [] });
    expect(await client.isSleeping()).toHaveLength(1);
    expect(proxy.made).toBe(2);
    expect(engine.state(0).received.get("FlushCache")).toBe(1);
  });

  it("lets a state-changing call of a client that vanished end, and audits it", async () => {
    const lines: unknown[] = [];
    const { relay, engine, join } = await serveSimulated(
      { lateReply: [{ op: "PauseScheduler", ms: 200 }] },
      { audit: { write: (entry) => lines.push(entry) } },
    );
    const proxy = await proxyOf(relay.url);
    const client = createClient(await through(proxy.url, { client: "vanishing" }));
    const pausing = failureOf(client.pauseScheduler({ mode: "wait" }));
    await expect.poll(() => engine.state(0).received.get("PauseScheduler")).toBe(1);
    proxy.cut();
    expect((await pausing).code).toBe("outcome_unknown");
    await expect
      .poll(() => lines)
      .toMatchObject([{ operation: "pauseScheduler", outcome: "ok", client: "vanishing", replies: [{ engine: 0 }] }]);
    const { client: other } = await join();
    expect((await other.state()).engines).toMatchObject([{ scheduler: "paused" }]);
  });

  it("has calls wait for the next connection, up to their own deadline", async () => {
    const { relay } = await serveSimulated();
    const proxy = await proxyOf(relay.url);
    const connection = await through(proxy.url);
    const client = createClient(connection);
    proxy.refuse(true);
    proxy.cut();
    await reaches(connection, "waiting");
    const failure = await failureOf(client.isSleeping({}, { timeoutMs: 150 }));
    expect(failure).toMatchObject({ code: "unreachable", stage: "queue" });
    const waiting = client.isSleeping({}, { timeoutMs: 20_000 });
    proxy.refuse(false);
    expect(await waiting).toHaveLength(1);
  });

  it("W09 a connection that is silent is closed by the client, which says what may have happened", async () => {
    const { relay, engine } = await serveSimulated({ dropReply: [{ op: "FlushCache" }] }, { limits: { idleMs: 400 } });
    const proxy = await proxyOf(relay.url);
    const client = createClient(await through(proxy.url));
    const flushing = failureOf(client.flushCache({}, { timeoutMs: 60_000 }));
    await expect.poll(() => engine.state(0).received.get("FlushCache")).toBe(1);
    proxy.stall();
    expect(await flushing).toMatchObject({ code: "outcome_unknown", cause: { code: "unreachable" } });
    // the relay finds out by itself as well
    await expect.poll(() => relay.clients, { timeout: 5000 }).toBe(0);
  });

  it("W09 a client that only listens is kept", async () => {
    const { join, relay } = await serveSimulated({}, { limits: { idleMs: 200 } });
    const { connection } = await join();
    let closed = false;
    void connection.closed.then(() => {
      closed = true;
    });
    const start = performance.now();
    await expect.poll(() => performance.now() - start, { timeout: 5000, interval: 50 }).toBeGreaterThan(900);
    expect({ closed, clients: relay.clients, state: connection.engines[0]?.state }).toEqual({ closed: false, clients: 1, state: "up" });
  });

  it("tells what is no relay from what is not there", async () => {
    expect((await failureOf(connect("ws://127.0.0.1:1/", { WebSocket }))).code).toBe("unreachable");
    expect((await failureOf(connect("no url", { WebSocket }))).code).toBe("invalid_argument");
    const { relay } = await serveSimulated({}, { requireOrigin: true });
    expect(await failureOf(connect(relay.url, { WebSocket }))).toMatchObject({ code: "forbidden" });
  });

  it("asks for another credential once when the last one is refused", async () => {
    const accepted = new Set(["first"]);
    const { relay } = await serveSimulated(
      {},
      { authenticate: ({ token }) => (accepted.has(token ?? "") ? { name: "x", scopes: ["read"] } : undefined) },
    );
    const proxy = await proxyOf(relay.url);
    const tokens = ["first", "stale", "second", "stale", "stale"];
    const connection = await through(proxy.url, { token: () => tokens.shift() ?? "" });
    const client = createClient(connection);
    accepted.clear();
    accepted.add("second");
    proxy.cut();
    await reaches(connection, "waiting");
    expect(await client.isSleeping()).toHaveLength(1);
    proxy.cut();
    expect((await connection.closed).error?.code).toBe("unauthenticated");
    expect(tokens).toEqual([]);
    expect((await failureOf(client.isSleeping())).code).toBe("closed");
  });
});

describe("a relay that stops", () => {
  it("tells clients, lets calls under way end, refuses new ones, and says that it is away", async () => {
    const { relay, near, engine } = await serveSimulated({ lateReply: [{ op: "FlushCache", times: 1, ms: 300 }] });
    const port = Number(new URL(relay.url).port);
    const connection = await through(relay.url);
    const client = createClient(connection);
    const flushing = client.flushCache();
    await expect.poll(() => engine.state(0).received.get("FlushCache")).toBe(1);
    const closing = relay.close("a new release comes");
    const refused = failureOf(client.isSleeping({}, { timeoutMs: 200 }));
    expect(await flushing).toHaveLength(1);
    await closing;
    expect(["going_away", "unreachable"]).toContain((await refused).code);
    // a further relay takes its place, under the same connection
    const next = await serve(near.connection, { port });
    onTestFinished(() => next.close("the test is over", { drainMs: 1 }));
    expect(await client.isSleeping({}, { timeoutMs: 20_000 })).toHaveLength(1);
  });

  it("does not wait longer than it is told", async () => {
    const { relay, join, engine } = await serveSimulated({ dropReply: [{ op: "FlushCache" }] });
    const { client } = await join();
    const flushing = failureOf(client.flushCache());
    await expect.poll(() => engine.state(0).received.get("FlushCache")).toBe(1);
    await relay.close("now", { drainMs: 50 });
    expect((await flushing).code).toBe("outcome_unknown");
  });

  it("closes by itself when its connection does", async () => {
    const { relay, near, join } = await serveSimulated();
    const { connection } = await join();
    await near.close();
    await relay.closed;
    expect(relay.clients).toBe(0);
    await connection.close();
  });
});
