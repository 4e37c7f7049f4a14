// Calls of one client do not stand before those of others, and do not pile up when clients come and go.
import { describe, expect, it } from "vitest";
import type { AuditEntry, Identity } from "../../src/relay/index.ts";
import { Lines } from "../../src/relay/lines.ts";
import { serveSimulated } from "../contract/relayed-group.ts";
import { RawClient } from "./raw-client.ts";

const authenticate = ({ token = "" }: { readonly token?: string }): Identity => ({ name: token, scopes: ["read", "admission"] });
const never = new AbortController().signal;

describe("calls", () => {
  it("of one credential over many connections leave the next of another before them", async () => {
    const { relay, engine } = await serveSimulated({ lateReply: [{ op: "IsSleeping", ms: 15 }] }, { authenticate });
    const many = await Promise.all(Array.from({ length: 3 }, () => new RawClient(relay.url).hello("greedy")));
    const one = await new RawClient(relay.url).hello("modest");
    for (const client of many) for (let id = 1; id <= 64; id++) client.call(id, { $tag: "IsSleepingReqInput" });
    await expect.poll(() => engine.state(0).received.get("IsSleeping")).toBeGreaterThan(0);
    const before = engine.state(0).received.get("IsSleeping") ?? 0;
    one.call(1, { $tag: "IsSleepingReqInput" });
    expect((await one.completed(1)).failure).toBeNull();
    // two that were in line, the one itself, and what passed while its message was on its way
    expect((engine.state(0).received.get("IsSleeping") ?? 0) - before).toBeLessThan(20);
    for (const client of many) for (let id = 1; id <= 64; id++) expect((await client.completed(id)).failure).toBeNull();
  });

  it("that wait behind others of their client end at their own deadline, or when they are given up, with nothing sent", async () => {
    const { relay, engine } = await serveSimulated({ dropReply: [{ op: "IsSleeping" }] });
    const raw = await new RawClient(relay.url).hello();
    for (let id = 1; id <= 2; id++) raw.call(id, { $tag: "IsSleepingReqInput" });
    raw.call(5, { $tag: "IsSleepingReqInput" }, { timeoutMs: 100 });
    raw.call(6, { $tag: "IsSleepingReqInput" }, { timeoutMs: Number.NaN });
    const { encodeCancel } = await import("../../generated/relay/encoders.ts");
    raw.call(7, { $tag: "IsSleepingReqInput" });
    raw.socket.send(encodeCancel({ id: 7 }));
    expect((await raw.completed(7)).failure).toMatchObject({ code: "aborted", stage: "queue" });
    expect((await raw.completed(6)).failure).toMatchObject({ code: "invalid_argument" });
    expect((await raw.completed(5)).failure).toMatchObject({ code: "timeout", stage: "queue" });
    expect(engine.state(0).received.get("IsSleeping")).toBe(1);
  });

  it("of clients that vanish are seen through once they are in front of the engines, and given up where they are not", async () => {
    const lines: AuditEntry[] = [];
    const audit = { write: (entry: AuditEntry) => void lines.push(entry) };
    const { relay, engine } = await serveSimulated(
      { lateReply: [{ op: "FlushCache", ms: 200 }] },
      { audit, limits: { callsPerSecond: 2000 } },
    );
    for (let round = 0; round < 10; round++) {
      const raw = await new RawClient(relay.url).hello();
      for (let id = 1; id <= 50; id++) raw.call(id, { $tag: "FlushCacheReqInput" });
      raw.call(51, { $tag: "GetInternalStateReq" });
      await raw.completed(51);
      raw.socket.terminate();
      await raw.closed;
    }
    await expect.poll(() => lines.length, { timeout: 20_000 }).toBe(500);
    const sent = lines.filter(({ outcome }) => outcome === "ok");
    expect(lines.filter(({ outcome }) => outcome === "aborted")).toHaveLength(500 - sent.length);
    expect(engine.state(0).received.get("FlushCache")).toBe(sent.length);
    // two, and further ones as far as those have ended meanwhile
    expect(sent.length).toBeGreaterThanOrEqual(2);
    expect(sent.length).toBeLessThan(100);
  });
});

describe("a line", () => {
  it("has two turns at a time, in order, and one that is empty is forgotten", async () => {
    const lines = new Lines();
    const order: number[] = [];
    const taken = await Promise.all(Array.from({ length: 2 }, () => lines.enter("a", 1000, never)));
    const waiting = [5, 6].map(async (number) => {
      const leave = await lines.enter("a", 60_000, never);
      order.push(number);
      return leave;
    });
    expect(lines.enter("b", 1000, never)).toBeTypeOf("function");
    taken[0]?.();
    taken[0]?.();
    (await waiting[0])?.();
    (await waiting[1])?.();
    expect(order).toEqual([5, 6]);
  });

  it("is left for the reason of a signal, and when time is up", async () => {
    const lines = new Lines();
    for (let index = 0; index < 2; index++) lines.enter("a", 1000, never);
    const stop = new AbortController();
    const waiting = lines.enter("a", 1000, stop.signal);
    stop.abort("why");
    await expect(waiting).rejects.toEqual({ expired: false, reason: "why" });
    await expect(lines.enter("a", 1, never)).rejects.toEqual({ expired: true, reason: undefined });
  });
});
