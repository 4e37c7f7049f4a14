import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect as connectTcp } from "node:net";
import { describe, expect, it } from "vitest";
import { encodeCall, encodeHello, encodePing } from "../../generated/relay/encoders.ts";
import type { Client } from "../../src/index.ts";
import { encodeControlRequest } from "../../src/messages.ts";
import { encodeAny } from "../../src/wire/index.ts";
import { serveSimulated } from "../contract/relayed-group.ts";
import { randomOf } from "../faults/random.ts";
import { frame } from "./frame.ts";
import { RawClient } from "./raw-client.ts";
import { rawSocket } from "./raw-socket.ts";

/** Another client is served as if nothing had happened. */
async function unharmed(client: Client): Promise<void> {
  expect(await client.isSleeping({}, { timeoutMs: 20_000 })).toHaveLength(1);
}

const hello = encodeHello({ versions: [1] });

describe("requests that are no WebSocket", () => {
  it.each([
    ["GET", "/", 426],
    ["POST", "/", 426],
    ["GET", "/etc/passwd", 404],
    ["GET", "/metrics", 404],
  ])("%s %s: %i", async (method, path, status) => {
    const { relay } = await serveSimulated();
    const { port } = new URL(relay.url);
    const request = httpRequest({ port, method, path, host: "127.0.0.1" }).end();
    const [response] = await once(request, "response");
    response.resume();
    expect(response.statusCode).toBe(status);
  });

  it("an upgrade without the subprotocol, and one at another path", async () => {
    const { relay } = await serveSimulated();
    await expect(new RawClient(relay.url, {}, ["other"]).opened()).rejects.toThrow("HTTP 400");
    await expect(new RawClient(`${relay.url}other`).opened()).rejects.toThrow("HTTP 404");
  });

  it("garbage instead of HTTP", async () => {
    const { relay, join } = await serveSimulated();
    const { client } = await join();
    const socket = connectTcp(Number(new URL(relay.url).port), "127.0.0.1");
    socket.on("error", () => {});
    socket.end(Buffer.alloc(100_000, 0xff));
    socket.resume();
    await once(socket, "close");
    await unharmed(client);
  });
});

describe("frames", () => {
  it("W01 a text frame closes with 1003", async () => {
    const { relay, join } = await serveSimulated();
    const { client } = await join();
    const raw = await new RawClient(relay.url).hello();
    raw.socket.send("pause");
    expect((await raw.closed).code).toBe(1003);
    await unharmed(client);
  });

  it("fragments, and one byte at a time, are put together", async () => {
    const { relay } = await serveSimulated();
    const socket = await rawSocket(relay.url);
    const received: Buffer[] = [];
    socket.on("data", (bytes) => received.push(bytes));
    const ping = encodePing({ nonce: 77 });
    for (const byte of frame(2, hello)) socket.write(Buffer.of(byte));
    await expect.poll(() => Buffer.concat(received).includes("Welcome")).toBe(true);
    socket.write(frame(2, ping.subarray(0, 3), false));
    socket.write(frame(0, ping.subarray(3, 4), false));
    socket.write(frame(0, ping.subarray(4)));
    await expect.poll(() => Buffer.concat(received).includes("Pong")).toBe(true);
  });

  it.each([
    ["of 100 MB, announced", Buffer.of(0x82, 0xff, 0, 0, 0, 0, 0x06, 0x40, 0, 0, 0, 0, 0, 0)],
    ["without a mask", Buffer.of(0x82, 0x01, 0x00)],
    ["compressed, though nothing was agreed", Buffer.of(0xc2, 0x81, 0, 0, 0, 0, 0)],
    ["of an unknown kind", frame(7, new Uint8Array(1))],
    ["that continues nothing", frame(0, new Uint8Array(1))],
  ])("W07 a frame %s closes that connection alone", async (_, bytes) => {
    const { relay, join } = await serveSimulated();
    const { client } = await join();
    const socket = await rawSocket(relay.url);
    socket.resume();
    socket.write(bytes);
    await once(socket, "close");
    await unharmed(client);
  });

  it("W07 a message above the limit closes with 1009, and this client does not send one", async () => {
    const { relay, join } = await serveSimulated({}, { limits: { messageBytes: 20_000 } });
    const { client } = await join();
    const raw = await new RawClient(relay.url).hello();
    raw.socket.send(new Uint8Array(20_001));
    expect((await raw.closed).code).toBe(1009);
    const { client: other } = await join();
    const failure = await other.updateWeightFromDisk({ modelPath: "x".repeat(30_000) }, { guard: true }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "limit_exceeded", stage: "queue", path: "message_bytes" });
    await unharmed(client);
  });

  it("a thousand fragments without an end cost no more than the limit", async () => {
    const { relay, join } = await serveSimulated({}, { limits: { messageBytes: 20_000 } });
    const { client } = await join();
    const socket = await rawSocket(relay.url);
    socket.resume();
    socket.write(frame(2, new Uint8Array(100), false));
    for (let index = 0; index < 1000; index++) socket.write(frame(0, new Uint8Array(100), false));
    await once(socket, "close");
    await unharmed(client);
  });
});

describe("messages", () => {
  const nested = (depth: number): Uint8Array => new Uint8Array(depth).fill(0x91);
  it.each([
    ["nothing", new Uint8Array(0)],
    ["a nesting bomb", nested(15_000)],
    ["a list that claims four billion items", Uint8Array.of(0xdd, 0xff, 0xff, 0xff, 0xff)],
    ["an unknown tag", encodeAny(["Launch", 1])],
    ["a message of a relay", encodeAny(["Welcome"])],
    ["an id of another type", encodeAny(["Call", "1", new Uint8Array(1)])],
    ["a second hello", hello],
  ])("%s closes with 4400 and says why", async (_, bytes) => {
    const { relay, join } = await serveSimulated();
    const { client } = await join();
    const raw = await new RawClient(relay.url).hello();
    raw.socket.send(bytes);
    expect(await raw.take(({ $tag }) => $tag === "Refused")).toMatchObject({ id: null });
    expect((await raw.closed).code).toBe(4400);
    await unharmed(client);
  });

  it.each([
    ["a call", encodeCall({ id: 1, request: encodeControlRequest({ $tag: "IsSleepingReqInput" }) })],
    ["a long one", new Uint8Array(100_000)],
  ])("%s before hello closes with 4400", async (_, bytes) => {
    const { relay, engine } = await serveSimulated();
    const raw = await new RawClient(relay.url).opened();
    raw.socket.send(bytes);
    expect((await raw.closed).code).toBe(4400);
    expect(engine.state(0).received.has("IsSleeping")).toBe(false);
  });

  it("W13 requests that are none of the schema's fail by their id and reach no engine", async () => {
    const { relay, engine, join } = await serveSimulated();
    const { client } = await join();
    const raw = await new RawClient(relay.url).hello();
    const before = engine.state(0).received;
    const requests: readonly [code: string, request: Uint8Array][] = [
      ["unknown_tag", encodeAny(["PickleWrapper", null, null, Uint8Array.of(0x80, 4)])],
      ["unknown_tag", encodeAny(["PauseSchedulerReqOutput", null, null, true, ""])],
      ["malformed", Uint8Array.of(0x80, 0x04, 0x95)],
      ["malformed", encodeAny(["PauseSchedulerReqInput", null, null, "explode"])],
      ["malformed", new Uint8Array(0)],
      [
        "nesting_too_deep",
        Uint8Array.of(0x94, 0xb3, ...Buffer.from("SetInternalStateReq"), 0xc0, 0xc0, 0x81, 0xa1, 0x61, ...nested(200), 0xc0),
      ],
    ];
    for (const [index, [code, request]] of requests.entries()) {
      raw.socket.send(encodeCall({ id: index + 1, request }));
      expect((await raw.completed(index + 1)).failure?.code).toBe(code);
    }
    expect(engine.state(0).received).toEqual(before);
    await unharmed(client);
  });

  it("W13 what a request has beyond its fields is not passed on", async () => {
    const { relay, engine } = await serveSimulated();
    const raw = await new RawClient(relay.url).hello();
    raw.socket.send(encodeCall({ id: 1, request: encodeAny(["IsSleepingReqInput", null, null, Uint8Array.of(0x80, 4)]) }));
    expect((await raw.completed(1)).failure).toBeNull();
    expect(engine.state(0).received.get("IsSleeping")).toBe(1);
  });

  it("a list longer than the limit is refused", async () => {
    const { join } = await serveSimulated({}, { limits: { listLength: 100 } });
    const { client } = await join();
    const names = Array.from({ length: 101 }, (_, index) => `p${index}`);
    const request = { names, dtypeNames: names.map(() => "bfloat16"), shapes: names.map(() => [1]), weightVersion: null };
    const failure = await client.updateWeightsFromDistributed(request).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "limit_exceeded", path: "list_length" });
  });

  it("100,000 malformed messages of a fuzzer end connections and nothing else", async () => {
    const { relay, join } = await serveSimulated({}, { limits: { callsPerSecond: 1_000_000 } });
    const { client } = await join();
    const random = randomOf(7);
    const seeds = [hello, encodePing({ nonce: 1 }), encodeCall({ id: 3, request: encodeControlRequest({ $tag: "IsSleepingReqInput" }) })];
    let sent = 0;
    let closed = 0;
    while (sent < 100_000) {
      const raw = await new RawClient(relay.url).hello();
      const start = performance.now();
      while (raw.socket.readyState === 1 && sent < 100_000 && performance.now() - start < 1000) {
        // those that arrive behind one that closes are dropped, so a burst is short
        for (let index = 0; index < 200; index++, sent++) {
          const bytes = Buffer.from(seeds[Math.floor(random() * seeds.length)] as Uint8Array);
          for (let flips = 1 + Math.floor(random() * 4); flips > 0; flips--)
            bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
          raw.socket.send(bytes.subarray(0, 1 + Math.floor(random() * bytes.length)));
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
      raw.socket.terminate();
      closed++;
    }
    expect(closed).toBeGreaterThan(5);
    await unharmed(client);
    await expect.poll(() => relay.clients, { timeout: 10_000 }).toBe(1);
  });
});

describe("floods", () => {
  it("calls beyond those in flight fail by their id", async () => {
    const { relay } = await serveSimulated({ dropReply: [{ op: "IsSleeping" }] }, { limits: { callsInFlight: 3 } });
    const raw = await new RawClient(relay.url).hello();
    for (let id = 1; id <= 4; id++) raw.call(id, { $tag: "IsSleepingReqInput" });
    expect((await raw.completed(4)).failure).toMatchObject({ code: "limit_exceeded", path: "calls_in_flight" });
  });

  it("a client that connects again has no more calls in a second than one that stays", async () => {
    const { relay } = await serveSimulated({}, { limits: { callsPerSecond: 5 } });
    const codes: (string | undefined)[] = [];
    for (let id = 1; id <= 8; id++) {
      const raw = await new RawClient(relay.url).hello();
      raw.call(id, { $tag: "IsSchedulerPausedReqInput" });
      codes.push((await raw.completed(id)).failure?.code);
      raw.socket.terminate();
    }
    expect(codes.slice(0, 5)).toEqual(Array(5).fill(undefined));
    expect(codes).toContain("limit_exceeded");
  });

  it("messages of any kind beyond four times that close with 4429", async () => {
    const { relay, join } = await serveSimulated({}, { limits: { callsPerSecond: 10 } });
    const { client } = await join();
    const raw = await new RawClient(relay.url).hello();
    for (let nonce = 0; nonce < 50; nonce++) raw.socket.send(encodePing({ nonce }));
    expect((await raw.closed).code).toBe(4429);
    await unharmed(client);
  });

  it("W05 a client that does not read is closed, and costs no more than its buffer", async () => {
    const { relay, join } = await serveSimulated(
      {},
      { limits: { sendBufferBytes: 100_000, callsPerSecond: 100_000, callsInFlight: 1000 } },
    );
    const { client } = await join();
    const socket = await rawSocket(relay.url);
    socket.write(frame(2, hello));
    await once(socket, "data");
    socket.pause();
    const ping = frame(2, encodePing({ nonce: 1 }));
    const burst = Buffer.concat(Array.from({ length: 2000 }, () => ping));
    let sent = 0;
    await expect
      .poll(
        () => {
          if (!socket.destroyed && socket.writableLength < 1_000_000) socket.write(burst);
          sent += 2000;
          return relay.clients;
        },
        { timeout: 30_000, interval: 5 },
      )
      .toBe(1);
    expect(sent).toBeGreaterThan(2000);
    await unharmed(client);
  });

  it("more connections than there may be from one address are ended", async () => {
    const { relay, join } = await serveSimulated({}, { limits: { connectionsPerAddress: 5 } });
    const { client } = await join();
    const many = await Promise.allSettled(Array.from({ length: 20 }, () => new RawClient(relay.url).opened()));
    expect(many.filter(({ status }) => status === "fulfilled")).toHaveLength(4);
    await unharmed(client);
  });

  it("more connections than there may be at all are refused with 503", async () => {
    const { relay, join } = await serveSimulated({}, { limits: { connections: 2 } });
    const { client } = await join();
    await new RawClient(relay.url).hello();
    await expect(new RawClient(relay.url).opened()).rejects.toThrow("HTTP 503");
    await unharmed(client);
  });

  it("10,000 connections half open leave room for others", async () => {
    const { relay, join } = await serveSimulated({}, { limits: { connectionsPerAddress: 500, handshakeMs: 1000 } });
    const { client } = await join();
    const port = Number(new URL(relay.url).port);
    let ended = 0;
    for (let made = 0; made < 10_000; made += 500) {
      const sockets = Array.from({ length: 500 }, () => {
        const socket = connectTcp(port, "127.0.0.1");
        socket.on("error", () => {});
        socket.on("close", () => ended++);
        socket.write("GET / HTTP/1.1\r\nHost: 127");
        return socket;
      });
      await unharmed(client);
      for (const socket of sockets) socket.destroy();
    }
    await expect.poll(() => ended, { timeout: 20_000 }).toBe(10_000);
    // the places are given back
    await join();
  });
});

describe("W11 ids", () => {
  it("two clients with the same ids get their own answers", async () => {
    const { relay } = await serveSimulated({ ranks: 2 });
    const clients = [await new RawClient(relay.url).hello(), await new RawClient(relay.url).hello()];
    for (let id = 1; id <= 40; id++) {
      clients[0]?.call(id, { $tag: "IsSleepingReqInput" }, { engines: [0] });
      clients[1]?.call(id, { $tag: "IsSchedulerPausedReqInput" }, { engines: [1] });
    }
    for (const [index, client] of clients.entries()) {
      for (let id = 1; id <= 40; id++) expect((await client.completed(id)).failure).toBeNull();
      const replies = client.messages.filter((message) => message.$tag === "Reply");
      expect(replies.map(({ engine }) => engine)).toEqual(Array.from({ length: 40 }, () => index));
    }
  });

  it("one that is under way is refused a second time, and its call goes on", async () => {
    const { relay } = await serveSimulated({ lateReply: [{ op: "IsSleeping", ms: 100 }] });
    const raw = await new RawClient(relay.url).hello();
    raw.call(9, { $tag: "IsSleepingReqInput" });
    raw.call(9, { $tag: "PauseSchedulerReqInput", mode: "abort" });
    expect(await raw.take(({ $tag }) => $tag === "Refused")).toMatchObject({ id: 9, failure: { code: "invalid_argument" } });
    expect((await raw.completed(9)).failure).toBeNull();
    raw.call(9, { $tag: "IsSleepingReqInput" });
    expect((await raw.completed(9)).failure).toBeNull();
  });

  it("the reply to a client that has left does not block the next one's", async () => {
    const { relay, join } = await serveSimulated({ lateReply: [{ op: "IsSleeping", times: 1, ms: 200 }] });
    const { client } = await join();
    const raw = await new RawClient(relay.url).hello();
    raw.call(1, { $tag: "IsSleepingReqInput" });
    raw.socket.terminate();
    await raw.closed;
    await unharmed(client);
  });
});
