// What attackers would write into logs, metrics and the process itself.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { encodeCall } from "../../generated/relay/encoders.ts";
import type { Connection, ConnectionEvent, EngineReply } from "../../src/index.ts";
import { elide } from "../../src/relay/audit.ts";
import { type AuditEntry, auditFile, type RelayLogEntry, serve } from "../../src/relay/index.ts";
import { Refusals } from "../../src/relay/refusals.ts";
import { encodeAny } from "../../src/wire/index.ts";
import { serveSimulated } from "../contract/relayed-group.ts";
import { connectSimulated } from "../contract/simulated-group.ts";
import { RawClient } from "./raw-client.ts";

describe("the audit log", () => {
  it("counts those that get no line", () => {
    const refusals = new Refusals();
    expect(Array.from({ length: 12 }, () => refusals.next())).toEqual([...Array.from({ length: 10 }, () => 0), undefined, undefined]);
  });

  it("has ten lines in a second for clients that are refused, and says how many more there were", async () => {
    const lines: AuditEntry[] = [];
    const log: RelayLogEntry[] = [];
    let refused = 0;
    const authenticate = () => {
      refused++;
      throw new Error("no such key");
    };
    const { relay } = await serveSimulated(
      {},
      { authenticate, audit: { write: (entry) => void lines.push(entry) }, log: (entry) => void log.push(entry) },
    );
    const attempts = 60;
    for (let attempt = 0; attempt < attempts; attempt++) await (await new RawClient(relay.url).hello("guess")).closed;
    expect(refused).toBe(attempts);
    expect(lines.length).toBeGreaterThanOrEqual(10);
    const untold = lines.reduce((sum, { untold = 0 }) => sum + untold, 0);
    expect(lines.length + untold).toBeLessThanOrEqual(attempts);
    expect(log).toHaveLength(lines.length);
    // later ones tell of those that have no line
    await expect
      .poll(
        async () => {
          await (await new RawClient(relay.url).hello("guess")).closed;
          return lines.length + lines.reduce((sum, { untold = 0 }) => sum + untold, 0) === refused;
        },
        { timeout: 10_000 },
      )
      .toBe(true);
  });

  it("has lines that are one line for any reader, and text that moves no cursor", async () => {
    const folder = mkdtempSync(joinPath(tmpdir(), "enginewire-audit-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = joinPath(folder, "audit.log");
    const audit = auditFile(path);
    onTestFinished(() => audit.close());
    const { join } = await serveSimulated({}, { audit });
    const name = 'a\n{"type":"call","who":"root"}\u001b[2J\u009b2J\u2028\u2029\u202e\u0000\u007f';
    const { client } = await join({ client: name });
    await client.flushCache();
    const text = readFileSync(path, "utf8");
    expect(text).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202e](?!$)/u);
    expect(text.split("\n")).toHaveLength(2);
    expect((JSON.parse(text) as AuditEntry).client).toBe(name);
  });

  it("has short lines for requests of many values, whatever they are nested in", () => {
    const wide = (depth: number): unknown =>
      depth === 0 ? "x".repeat(500) : Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`k${index}`, wide(depth - 1)]));
    expect(JSON.stringify(elide(wide(3))).length).toBeLessThan(40_000);
    expect(elide(Array.from({ length: 3 }, () => ["x"]))).toEqual([["x"], ["x"], ["x"]]);
  });
});

describe("maps of a request", () => {
  it("change no prototype, and reach the engine as they are", async () => {
    const lines: AuditEntry[] = [];
    const { relay } = await serveSimulated({}, { audit: { write: (entry) => void lines.push(entry) } });
    const raw = await new RawClient(relay.url).hello();
    const hostile = new Map<string, unknown>([
      ["__proto__", { polluted: true }],
      ["constructor", { prototype: { polluted: true } }],
      ["toString", 1],
    ]);
    raw.socket.send(encodeCall({ id: 1, request: encodeAny(["SetInternalStateReq", null, null, hostile]) }));
    expect((await raw.completed(1)).failure).toBeNull();
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    const [line] = lines as [AuditEntry];
    expect(Object.getPrototypeOf((line.request as { serverArgs: object }).serverArgs)).toBe(Object.prototype);
    expect(JSON.stringify(line.request)).toContain('"__proto__":{"polluted":true}');
  });
});

describe("metrics", () => {
  it("have no more series than there are operations and codes, whatever clients ask for", async () => {
    const { relay } = await serveSimulated({}, { metrics: true });
    const raw = await new RawClient(relay.url).hello();
    for (let id = 1; id <= 200; id++) {
      raw.socket.send(encodeCall({ id, request: encodeAny([`Unknown${id}`, null, null]) }));
      await raw.completed(id);
    }
    const text = await (await fetch(`${relay.url.replace("ws", "http")}metrics`)).text();
    expect(text.match(/^enginewire_relay_calls_total\{/gm)).toHaveLength(1);
    expect(text).toContain('enginewire_relay_calls_total{operation="",outcome="unknown_tag"} 200');
  });
});

it("many clients of one credential that can be withdrawn make no warning, and all end with it", async () => {
  const warnings: Error[] = [];
  const heard = (warning: Error) => void warnings.push(warning);
  process.on("warning", heard);
  onTestFinished(() => void process.off("warning", heard));
  const withdrawn = new AbortController();
  const { relay } = await serveSimulated({}, { authenticate: () => ({ name: "x", scopes: ["read"], withdrawn: withdrawn.signal }) });
  const clients = await Promise.all(Array.from({ length: 30 }, () => new RawClient(relay.url).hello("t")));
  withdrawn.abort();
  for (const { closed } of clients) expect((await closed).code).toBe(4401);
  expect(warnings).toEqual([]);
});

describe("a connection that says what no message can hold", () => {
  /** A real connection, of which some replies and events are replaced. */
  function misleading(real: Connection, events: readonly ConnectionEvent[], reply?: EngineReply): Connection {
    return new Proxy(real, {
      get(target, name) {
        if (name === "call" && reply !== undefined)
          return async (_: unknown, { onReply }: { onReply?: (reply: EngineReply) => void }) => {
            try {
              onReply?.(reply);
            } catch (error) {
              // as connections do: a listener must not end what reads replies
              queueMicrotask(() => {
                throw error;
              });
            }
            return [reply];
          };
        if (name === "events")
          return async function* () {
            yield* events;
            yield* target.events();
          };
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  it("fails the call, and loses the event, and the relay goes on and says so", async () => {
    const { client } = await connectSimulated();
    const log: RelayLogEntry[] = [];
    const events: readonly ConnectionEvent[] = [{ type: "unexpected_output", engine: 0, rid: "\ud800" }];
    const reply = { engine: 0, durationMs: 1, reply: { $tag: "IsSleepingReqOutput", isSleeping: "perhaps" } } as unknown as EngineReply;
    const connection = misleading(client.connection, events, reply);
    const relay = await serve(connection, { port: 0, log: (entry) => void log.push(entry) });
    onTestFinished(() => relay.close("the test is over", { drainMs: 1 }));
    const raw = await new RawClient(relay.url).hello();
    raw.call(1, { $tag: "IsSleepingReqInput" });
    expect((await raw.completed(1)).failure).toMatchObject({ code: "invalid_value" });
    expect(log.map(({ message }) => message)).toEqual(["what an engine said could not be told to clients"]);
  });
});
