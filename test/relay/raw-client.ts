import { onTestFinished } from "vitest";
import WebSocket, { type ClientOptions } from "ws";
import { decodeRelayMessage } from "../../generated/relay/decoders.ts";
import { encodeCall, encodeHello } from "../../generated/relay/encoders.ts";
import type { CallInit, RelayMessage } from "../../generated/relay/types.ts";
import { encodeControlRequest } from "../../src/messages.ts";
import { subprotocol } from "../../src/transport/relay/protocol.ts";

/** A client without manners: it sends what a test tells it to. */
export class RawClient {
  readonly socket: WebSocket;
  /** Resolves with the close code and reason. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  readonly messages: RelayMessage[] = [];
  #wake: (() => void)[] = [];

  /** With `ends: "as they came"`, a reply that ends its call is not followed by the `Completed` that it stands for. */
  constructor(url: string, { ends, ...options }: ClientOptions & { ends?: "as they came" } = {}, protocols: string[] = [subprotocol]) {
    this.socket = new WebSocket(url, protocols, { perMessageDeflate: false, ...options });
    this.socket.on("error", () => {});
    this.closed = new Promise((resolve) => {
      this.socket.on("close", (code, reason) => {
        resolve({ code, reason: reason.toString() });
        this.#awake();
      });
    });
    this.socket.on("message", (data: Buffer) => {
      const message = decodeRelayMessage(data);
      this.messages.push(message);
      if (message.$tag === "Reply" && message.completed && ends === undefined)
        this.messages.push({ $tag: "Completed", id: message.id, failure: null });
      this.#awake();
    });
    onTestFinished(() => this.socket.terminate());
  }

  /** Resolves when it is open; rejects with the HTTP status that refused it. */
  async opened(): Promise<this> {
    if (this.socket.readyState === WebSocket.OPEN) return this;
    await new Promise<void>((resolve, reject) => {
      this.socket.once("open", resolve);
      this.socket.once("unexpected-response", (_, response) => {
        response.resume();
        reject(new Error(`HTTP ${response.statusCode}`));
      });
      this.socket.once("close", () => reject(new Error("closed")));
    });
    return this;
  }

  /** Opens and says hello; resolves when the relay has answered. */
  async hello(token: string | null = null): Promise<this> {
    await this.opened();
    this.socket.send(encodeHello({ versions: [1], token, client: "raw" }));
    await this.take((message) => message.$tag === "Welcome" || message.$tag === "Refused");
    return this;
  }

  call(id: number, request: Parameters<typeof encodeControlRequest>[0], options: Partial<CallInit> = {}): void {
    this.socket.send(encodeCall({ id, request: encodeControlRequest(request), ...options }));
  }

  /** The first message that fits, from those that came or are to come. */
  async take<Message extends RelayMessage>(fits: (message: RelayMessage) => boolean): Promise<Message> {
    for (;;) {
      const at = this.messages.findIndex(fits);
      if (at >= 0) return this.messages.splice(at, 1)[0] as Message;
      if (this.socket.readyState === WebSocket.CLOSED) throw new Error("closed before it came");
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  /** The end of a call. */
  completed(id: number): Promise<Extract<RelayMessage, { $tag: "Completed" }>> {
    return this.take((message) => message.$tag === "Completed" && message.id === id);
  }

  #awake(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
