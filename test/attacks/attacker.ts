import { connect as connectTcp, type Socket } from "node:net";
import WebSocket, { type ClientOptions } from "ws";
import { decodeRelayMessage } from "../../generated/relay/decoders.ts";
import { encodeHello } from "../../generated/relay/encoders.ts";
import { subprotocol } from "../../src/transport/relay/protocol.ts";

/** Another address than the client's: the relay's limits by address are the attacker's own. */
const localAddress = "127.0.0.2";
const tickMs = 4;

/** Connects, sends, and counts how it is refused. */
export class Attacker {
  readonly url: string;
  /** A token for one connection that was used. */
  readonly once: string;
  readonly refused = new Map<string, number>();
  stopped = false;
  readonly #begun: () => void;
  #tried = 0;
  readonly #sockets = new Set<Socket | WebSocket>();
  readonly #port: number;

  /** Calls `begun` at the first attempt. */
  constructor(url: string, once: string, begun: () => void) {
    this.url = url;
    this.once = once;
    this.#begun = begun;
    this.#port = Number(new URL(url).port);
  }

  /** Attempts so far. */
  get tried(): number {
    return this.#tried;
  }

  /** Notes an attempt, or several. */
  try(times = 1): void {
    if (this.#tried === 0) this.#begun();
    this.#tried += times;
  }

  /** Ends all that it has open. */
  async stop(): Promise<void> {
    this.stopped = true;
    for (const socket of this.#sockets) end(socket);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }

  /** Notes how something was refused. */
  refuse(how: string): void {
    this.refused.set(how, (this.refused.get(how) ?? 0) + 1);
  }

  /** Does something so often in a second, and waits for none of it; what is late because this process was is dropped. */
  async pace(perSecond: number, act: () => void): Promise<void> {
    let due = 0;
    let last = performance.now();
    while (!this.stopped) {
      await new Promise((resolve) => setTimeout(resolve, tickMs));
      const now = performance.now();
      due = Math.min(due + ((now - last) / 1000) * perSecond, perSecond / 10 + 1);
      last = now;
      for (; due >= 1 && !this.stopped; due--) act();
    }
  }

  /** A connection without a protocol. */
  tcp(): Socket {
    const socket = connectTcp({ port: this.#port, host: "127.0.0.1", localAddress });
    socket.setNoDelay(true);
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
    return socket;
  }

  /** A request with these lines; its status is counted. */
  http(lines: readonly string[]): void {
    this.try();
    const socket = this.tcp();
    let status = "";
    socket.on("data", (bytes: Buffer) => {
      status ||= `HTTP ${/^HTTP\/1\.1 (\d+)/.exec(bytes.toString("latin1"))?.[1] ?? "?"}`;
      socket.destroy();
    });
    socket.on("close", () => {
      if (!this.stopped) this.refuse(status || "closed");
    });
    socket.end(`${lines.join("\r\n")}\r\n\r\n`);
  }

  /** A WebSocket; how it is refused or closed by the relay is counted. */
  socket(options: ClientOptions = {}, protocols: readonly string[] = [subprotocol]): WebSocket {
    const socket = new WebSocket(this.url, [...protocols], { localAddress, perMessageDeflate: false, ...options });
    this.#sockets.add(socket);
    let status: string | undefined;
    socket.on("unexpected-response", (_, response) => {
      status = `HTTP ${response.statusCode}`;
      response.resume();
      socket.terminate();
    });
    socket.on("error", () => {});
    socket.on("close", (code) => {
      // one that the attacker has ended was not refused
      if (this.#sockets.delete(socket) && !this.stopped) this.refuse(status ?? (code === 1006 ? "cut off" : `close ${code}`));
    });
    return socket;
  }

  /** A WebSocket that has said hello; resolves when it was answered. Failures of its calls and streams are counted. */
  async greet(token: string, options: ClientOptions = {}): Promise<WebSocket | undefined> {
    const socket = this.socket(options);
    return new Promise((resolve) => {
      socket.on("open", () => socket.send(encodeHello({ versions: [1], token, client: "attacker" })));
      socket.on("close", () => resolve(undefined));
      socket.on("message", (data: Buffer) => {
        const message = decodeRelayMessage(data);
        if (message.$tag === "Welcome") resolve(socket);
        if ((message.$tag === "Completed" || message.$tag === "StreamEnd") && message.failure !== null)
          this.refuse(`error ${message.failure.code}`);
      });
    });
  }

  /** A WebSocket whose frames are written by hand; resolves when it is upgraded, and counts the code it is closed with. */
  async frames(): Promise<Socket> {
    const socket = this.tcp();
    const lines = ["GET / HTTP/1.1", "Host: 127.0.0.1", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];
    lines.push("Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==", `Sec-WebSocket-Protocol: ${subprotocol}`);
    let how = "cut off";
    socket.on("close", () => {
      if (!this.stopped) this.refuse(how);
    });
    return new Promise((resolve) => {
      socket.write(`${lines.join("\r\n")}\r\n\r\n`);
      socket.once("data", () => {
        socket.on("data", (bytes: Buffer) => {
          const code = closeCodeIn(bytes);
          if (code === undefined) return;
          how = `close ${code}`;
          socket.destroy();
        });
        resolve(socket);
      });
    });
  }

  /** Ends a connection, which was then not refused. */
  leave(socket: Socket | WebSocket): void {
    this.#sockets.delete(socket);
    socket.removeAllListeners("close");
    end(socket);
  }
}

function end(socket: Socket | WebSocket): void {
  if (socket instanceof WebSocket) socket.terminate();
  else socket.destroy();
}

/** The code of a close frame among whole frames of a server. */
function closeCodeIn(bytes: Buffer): number | undefined {
  for (let at = 0; at + 4 <= bytes.length; ) {
    const length = (bytes[at + 1] as number) & 127;
    if (bytes[at] === 0x88) return bytes.readUInt16BE(at + 2);
    at += 2 + (length < 126 ? length : length === 126 ? 2 + bytes.readUInt16BE(at + 2) : bytes.length);
  }
  return undefined;
}
