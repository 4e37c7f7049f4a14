// What an operator sees of a relay: audit log, health, metrics.
import { mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import WebSocket from "ws";
import { auditFile, serve } from "../../src/relay/index.ts";
import { connect } from "../../src/web/index.ts";
import { serveSimulated } from "../contract/relayed-group.ts";
import { bucket, group } from "../contract/simulated-group.ts";
import { failureOf } from "../faults/scripted-group.ts";

function temporaryFolder(): string {
  const folder = mkdtempSync(joinPath(tmpdir(), "enginewire-audit-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

const linesOf = (path: string): Record<string, unknown>[] =>
  readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("the audit log", () => {
  it("has a line for each state-changing call, with long values cut, and none for the others", async () => {
    const path = joinPath(temporaryFolder(), "audit.log");
    const audit = auditFile(path);
    onTestFinished(() => audit.close());
    const { join } = await serveSimulated({ ranks: 2 }, { audit });
    const { client } = await join({ client: "a trainer" });
    await client.isSleeping();
    await client.pauseScheduler({ mode: "wait" });
    await client.initWeightsUpdateGroup(group);
    const names = Array.from({ length: 500 }, (_, index) => `layer.${index}.${"x".repeat(200)}`);
    await client.updateWeightsFromDistributed({ ...bucket, names, dtypeNames: names.map(() => "bfloat16"), shapes: names.map(() => [4]) });
    await failureOf(client.releaseMemoryOccupation());
    const lines = linesOf(path);
    expect(lines.map(({ operation, outcome }) => [operation, outcome])).toEqual([
      ["pauseScheduler", "ok"],
      ["initWeightsUpdateGroup", "ok"],
      ["updateWeightsFromDistributed", "ok"],
      ["releaseMemoryOccupation", "operation_failed"],
    ]);
    expect(lines[0]).toMatchObject({
      type: "call",
      who: "anyone",
      client: "a trainer",
      address: "127.0.0.1",
      request: { mode: "wait" },
      replies: [
        { engine: 0, reply: { success: true } },
        { engine: 1, reply: { success: true } },
      ],
    });
    expect(Number(lines[0]?.durationMs)).toBeGreaterThanOrEqual(0);
    const request = lines[2]?.request as { names: string[] };
    expect(request.names).toHaveLength(9);
    expect(request.names.at(-1)).toBe("… (500 items)");
    expect(request.names[0]).toMatch(/… \(208 characters\)$/);
    for (const line of readFileSync(path, "utf8").split("\n")) expect(line.length).toBeLessThan(4000);
  });

  it("is opened anew where something has moved it away", async () => {
    const folder = temporaryFolder();
    const path = joinPath(folder, "audit.log");
    const audit = auditFile(path);
    onTestFinished(() => audit.close());
    const { join } = await serveSimulated({}, { audit });
    const { client } = await join();
    await client.flushCache();
    renameSync(path, joinPath(folder, "audit.log.1"));
    await client.flushCache();
    audit.reopen();
    await client.flushCache();
    expect(linesOf(joinPath(folder, "audit.log.1"))).toHaveLength(2);
    expect(linesOf(path)).toHaveLength(1);
  });

  it("that cannot be written stops state-changing calls, not others, until it can", async () => {
    let full = true;
    const audit = {
      write() {
        if (full) throw new Error("no space left on device");
      },
    };
    const log: { readonly level: string }[] = [];
    const { join, engine, relay } = await serveSimulated({}, { audit, log: (entry) => log.push(entry) });
    const { client } = await join();
    await client.flushCache();
    expect(await failureOf(client.flushCache())).toMatchObject({ code: "refused", message: expect.stringContaining("audit log") });
    expect(engine.state(0).received.get("FlushCache")).toBe(1);
    expect(await client.isSleeping()).toHaveLength(1);
    expect(log.every(({ level }) => level === "error")).toBe(true);
    const ready = async () => (await fetch(`${relay.url.replace("ws", "http")}readyz`)).status;
    expect(await ready()).toBe(503);
    full = false;
    // the refused call's own line is what finds out
    await failureOf(client.flushCache());
    await client.flushCache();
    expect(await ready()).toBe(200);
  });
});

describe("over HTTP", () => {
  it("says whether it lives and is ready", async () => {
    const { relay, engine } = await serveSimulated({ ranks: 2 });
    const base = relay.url.replace("ws", "http");
    expect((await fetch(`${base}healthz`)).status).toBe(200);
    expect((await fetch(`${base}readyz`)).status).toBe(200);
    await engine.close();
    await expect.poll(async () => (await fetch(`${base}readyz`)).status).toBe(503);
    expect((await fetch(`${base}healthz`)).status).toBe(200);
  });

  it("gives metrics to credentials that may read them", async () => {
    const authenticate = ({ token }: { readonly token?: string }) =>
      token === "m"
        ? ({ name: "prometheus", scopes: ["metrics"] } as const)
        : token === "r"
          ? ({ name: "r", scopes: ["read"] } as const)
          : undefined;
    const { relay, join } = await serveSimulated({}, { authenticate, metrics: true });
    const { client } = await join({ token: "r" });
    await client.isSleeping();
    await failureOf(client.flushCache());
    const ask = (token?: string) =>
      fetch(`${relay.url.replace("ws", "http")}metrics`, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });
    expect((await ask()).status).toBe(401);
    expect((await ask("wrong")).status).toBe(401);
    expect((await ask("r")).status).toBe(403);
    const text = await (await ask("m")).text();
    expect(text).toContain('enginewire_relay_calls_total{operation="isSleeping",outcome="ok"} 1');
    expect(text).toContain('enginewire_relay_calls_total{operation="flushCache",outcome="forbidden"} 1');
    expect(text).toContain("enginewire_relay_clients 1");
    expect(text).toContain('enginewire_relay_call_seconds_count{operation="isSleeping"} 1');
  });

  it("attaches to a server of one's own, beside what that serves, and leaves it open", async () => {
    const { near } = await serveSimulated();
    const server = createServer((request, response) => {
      if (!relay.answer(request, response)) response.end("mine");
    });
    onTestFinished(() => void server.close());
    const relay = await serve(near.connection, { server, path: "/engines" });
    expect(relay.url).toBe("");
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const base = relay.url.replace("ws", "http").replace("/engines", "");
    expect(await (await fetch(`${base}/x`)).text()).toBe("mine");
    expect(await (await fetch(`${base}/healthz`)).text()).toBe("ok\n");
    const connection = await connect(relay.url, { WebSocket });
    expect(connection.engines).toHaveLength(1);
    await connection.close();
    await relay.close();
    expect(await (await fetch(`${base}/x`)).text()).toBe("mine");
  });

  it.each([
    [{ port: 70_000 }, "port"],
    [{ path: "engines" }, "path"],
    [{ origins: ["*"] }, "origins"],
    [{ origins: ["https://*.example"] }, "origins"],
    [{ limits: { calls: 1 } }, "limits.calls"],
    [{ limits: { callsInFlight: 0 } }, "limits.callsInFlight"],
    [{ authenticate: "token" }, "authenticate"],
    [{ tokens: [] }, "tokens"],
    [{ server: createServer(), port: 1 }, "server"],
  ])("refuses the options %j", async (options, path) => {
    const { near } = await serveSimulated();
    expect(await failureOf(serve(near.connection, options as never))).toMatchObject({ code: "invalid_argument", path });
  });

  it("names an address that is taken", async () => {
    const { near, relay } = await serveSimulated();
    const failure = await failureOf(serve(near.connection, { port: Number(new URL(relay.url).port) }));
    expect(failure.code).toBe("address_unavailable");
  });
});
