// Connections that cost the relay something before it knows who comes: HTTP, TLS, first bytes, pings.
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { type AddressInfo, connect as connectTcp, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import WebSocket, { WebSocketServer } from "ws";
import { encodeHello, encodePing } from "../../generated/relay/encoders.ts";
import { AddressCount, networkOf } from "../../src/relay/addresses.ts";
import { Outbox } from "../../src/relay/outbox.ts";
import { serveSimulated } from "../contract/relayed-group.ts";
import { frame } from "./frame.ts";
import { RawClient } from "./raw-client.ts";
import { answerTo, closing, rawSocket } from "./raw-socket.ts";

const hello = frame(2, encodeHello({ versions: [1] }));

function silentConnection(url: string, localAddress = "127.0.0.1"): Socket {
  const socket = connectTcp({ port: Number(new URL(url).port), host: "127.0.0.1", localAddress });
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  return socket;
}

describe("addresses", () => {
  it.each([
    ["10.1.2.3", "10.1.2.3"],
    ["::ffff:10.1.2.3", "10.1.2.3"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
    ["2001:db8:1:2::6", "2001:db8:1:2"],
    ["2001:db8::6", "2001:db8:0:0"],
    ["::1", "0:0:0:0"],
    ["fe80::1%eth0", "fe80:0:0:0"],
    ["", ""],
  ])("%s counts as %s: who has one address of a network has them all", (address, network) => {
    expect(networkOf(address)).toBe(network);
  });

  it("of one network share their places", () => {
    const count = new AddressCount(2);
    const leave = count.enter("2001:db8:1:2::1");
    expect(count.enter("2001:db8:1:2::2")).toBeDefined();
    expect(count.enter("2001:db8:1:2:ffff::3")).toBeUndefined();
    expect(count.enter("2001:db8:1:3::1")).toBeDefined();
    leave?.();
    leave?.();
    expect(count.enter("2001:db8:1:2::4")).toBeDefined();
    expect(count.enter("2001:db8:1:2::5")).toBeUndefined();
  });

  it("however many they are, more connections than clients and some are closed", async () => {
    const { relay } = await serveSimulated({}, { limits: { connections: 4, handshakeMs: 60_000 } });
    let closed = 0;
    const sockets = Array.from({ length: 300 }, (_, index) => silentConnection(relay.url, `127.0.0.${2 + (index % 100)}`));
    for (const socket of sockets) socket.on("close", () => closed++);
    await expect.poll(() => closed, { timeout: 10_000 }).toBe(300 - 4 - 256);
  });

  it("are not what a header says", async () => {
    const { relay } = await serveSimulated({}, { limits: { connectionsPerAddress: 2 } });
    const headers = (index: number) => ({ headers: { "X-Forwarded-For": `10.0.0.${index}`, Forwarded: `for=10.0.0.${index}` } });
    const many = Array.from({ length: 10 }, (_, index) => new RawClient(relay.url, headers(index)).opened());
    expect((await Promise.allSettled(many)).filter(({ status }) => status === "fulfilled")).toHaveLength(2);
  });
});

describe("whoever says nothing, or too little", () => {
  it.each([
    ["nothing", ""],
    ["half a request", "GET / HTTP/1.1\r\nHost: 127"],
    ["half a body", "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000\r\n\r\nx"],
  ])("is closed at the handshake's deadline: %s", async (_, text) => {
    const { relay } = await serveSimulated({}, { limits: { handshakeMs: 200 } });
    const socket = silentConnection(relay.url);
    socket.resume();
    socket.write(text);
    // a header now and then puts nothing off
    const timer = setInterval(() => text !== "" && socket.write(text.startsWith("GET") ? "x" : "y"), 50);
    onTestFinished(() => clearInterval(timer));
    await closing(socket);
  });

  it("is closed then as well where TLS is spoken", async () => {
    const { relay } = await serveSimulated({}, { limits: { handshakeMs: 200 }, tls: {} });
    expect(relay.url).toMatch(/^wss:/);
    const socket = silentConnection(relay.url);
    socket.resume();
    await closing(socket);
  });

  it("is closed when it waits for an answer that does not come", async () => {
    const options = { limits: { handshakeMs: 200 }, metrics: true, authenticate: () => new Promise<undefined>(() => {}) };
    const { relay } = await serveSimulated({}, options);
    const socket = silentConnection(relay.url);
    socket.resume();
    socket.write("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    await closing(socket);
  });
});

describe("requests with tricks", () => {
  const upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: enginewire.v1"];
  const key = "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==";
  const host = "Host: 127.0.0.1";
  it.each([
    ["a second Host", ["GET / HTTP/1.1", "Host: evil.example", host, key, ...upgrade], 403],
    ["a second Origin", ["GET / HTTP/1.1", host, "Origin: http://evil.example", "Origin: http://127.0.0.1", key, ...upgrade], 403],
    ["no Host", ["GET / HTTP/1.1", key, ...upgrade], 403],
    ["no Host, as HTTP/1.0 may", ["GET / HTTP/1.0", key, ...upgrade], 403],
    ["a whole URL", ["GET http://127.0.0.1/ HTTP/1.1", host, key, ...upgrade], 404],
    ["another method", ["POST / HTTP/1.1", host, key, ...upgrade], 405],
    ["no key", ["GET / HTTP/1.1", host, ...upgrade], 400],
    ["another version", ["GET / HTTP/1.1", host, key, ...upgrade.with(2, "Sec-WebSocket-Version: 7")], 400],
    ["another protocol to change to", ["GET / HTTP/1.1", host, key, ...upgrade.with(1, "Upgrade: h2c")], 400],
    ["a subprotocol twice", ["GET / HTTP/1.1", host, key, ...upgrade, "Sec-WebSocket-Protocol: enginewire.v1"], 400],
    ["two lengths", ["POST / HTTP/1.1", host, "Content-Length: 1", "Content-Length: 2"], 400],
    ["a length and chunks", ["POST / HTTP/1.1", host, "Content-Length: 1", "Transfer-Encoding: chunked"], 400],
    ["a header without end", ["GET / HTTP/1.1", host, `Cookie: ${"x".repeat(100_000)}`], 431],
    ["a tunnel", ["CONNECT engine:5555 HTTP/1.1", host], undefined],
  ] as const)("%s", async (_, lines, status) => {
    const { relay, join } = await serveSimulated({}, { limits: { handshakeMs: 1000 } });
    const answer = await answerTo(relay.url, lines);
    if (status === undefined) expect(answer).toBe("");
    else expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(relay.clients).toBe(0);
    await join();
  });
});

describe("before a credential was shown", () => {
  it("no more bytes are kept than a first message may have, in whatever pieces", async () => {
    const { relay } = await serveSimulated();
    const socket = await rawSocket(relay.url);
    socket.resume();
    let written = 0;
    // a message of a megabyte is announced, which others may send
    socket.write(Buffer.of(0x82, 0xff, 0, 0, 0, 0, 0, 0x0f, 0xff, 0xff, 0, 0, 0, 0));
    const timer = setInterval(() => {
      if (socket.writable) {
        socket.write(Buffer.alloc(1000));
        written += 1000;
      }
    }, 1);
    onTestFinished(() => clearInterval(timer));
    await closing(socket);
    // what is under way when the relay closes does not count
    expect(written).toBeLessThan(500_000);
  });

  it("the bytes of those that were let in are not counted", async () => {
    const { relay } = await serveSimulated({}, { limits: { callsPerSecond: 2000 } });
    const raw = await new RawClient(relay.url).hello();
    for (let nonce = 0; nonce < 6000; nonce++) raw.socket.send(encodePing({ nonce }));
    await raw.take((message) => message.$tag === "Pong" && message.nonce === 5999);
  });
});

describe("frames that cost more than they weigh", () => {
  it("a message in more than a thousand pieces closes the connection", async () => {
    const { relay } = await serveSimulated();
    const socket = await rawSocket(relay.url);
    socket.resume();
    socket.write(hello);
    socket.write(
      Buffer.concat([frame(2, Uint8Array.of(0x92), false), ...Array.from({ length: 1100 }, () => frame(0, Uint8Array.of(1), false))]),
    );
    await closing(socket);
    await expect.poll(() => relay.clients).toBe(0);
  });

  it("a ping of the protocol's own is answered, once", async () => {
    const { relay } = await serveSimulated();
    const raw = await new RawClient(relay.url).hello();
    const answers: string[] = [];
    raw.socket.on("pong", (data) => answers.push(String(data)));
    raw.socket.ping("one");
    raw.socket.ping("two");
    await expect.poll(() => answers.at(-1)).toBe("two");
    raw.socket.send(encodePing({ nonce: 1 }));
    await raw.take(({ $tag }) => $tag === "Pong");
    expect(answers).toEqual(["one", "two"]);
  });

  it.each([
    ["pings", 9, "before it has said hello", false],
    ["pongs", 10, "before it has said hello", false],
    ["pings", 9, "when it was let in", true],
    ["pongs", 10, "when it was let in", true],
  ] as const)("%s (%i) without end close the client's connection %s", async (_, opcode, __, greeted) => {
    const { relay } = await serveSimulated({}, { limits: { callsPerSecond: 10 } });
    const socket = await rawSocket(relay.url);
    socket.resume();
    if (greeted) socket.write(hello);
    socket.write(Buffer.concat(Array.from({ length: 100 }, () => frame(opcode, new Uint8Array(2)))));
    await closing(socket);
    await expect.poll(() => relay.clients).toBe(0);
  });

  it("W05 pings of a client that does not read are not answered without end", async () => {
    const limits = { sendBufferBytes: 100_000, callsPerSecond: 100_000, handshakeMs: 60_000, idleMs: 600_000 };
    const { relay } = await serveSimulated({}, { limits });
    const socket = await rawSocket(relay.url);
    socket.pause();
    const burst = Buffer.concat(Array.from({ length: 1000 }, () => frame(9, new Uint8Array(125))));
    const fill = (): number => {
      if (!socket.destroyed && socket.writableLength < 1_000_000) socket.write(burst);
      return relay.clients;
    };
    await expect.poll(fill, { timeout: 30_000, interval: 5 }).toBe(0);
  });

  it("W05 short messages that wait count as much as they cost", async () => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const accepted = once(server, "connection") as Promise<[WebSocket, IncomingMessage]>;
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    onTestFinished(() => client.terminate());
    const [socket, { socket: stream }] = await accepted;
    let overflows = 0;
    const outbox = new Outbox(socket, stream, 100_000, () => overflows++);
    // in one turn, so that all of them wait
    for (let sent = 0; sent < 100; sent++) outbox.send(encodePing({ nonce: 1 }));
    expect(outbox.waiting).toBeGreaterThan(50_000);
    expect(overflows).toBe(0);
    await expect.poll(() => outbox.waiting).toBe(0);
    for (let sent = 0; sent < 1000; sent++) outbox.send(encodePing({ nonce: 1 }));
    expect(overflows).toBe(1);
  });
});
