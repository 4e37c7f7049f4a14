import { receiveAll } from "../node/receive-loop.ts";
import { SendQueue } from "../node/send-queue.ts";
import type { ZeroMQ } from "../node/zeromq.ts";
import { type Addresses, identityOf } from "./handshake.ts";

/** The raw frame an engine sends as it shuts down. */
export const engineCoreDead: Uint8Array = /* @__PURE__ */ new TextEncoder().encode("ENGINE_CORE_DEAD");

/** How long a sentinel may take to leave. */
const sentinelMs = 100;

/** What a link tells of. */
export interface LinkEvents {
  /** A message of the input socket. */
  readonly received: (frames: Uint8Array[]) => void;
  /** One of the sockets lost its connection, or failed. */
  readonly lost: () => void;
}

type Dealer = InstanceType<ZeroMQ["Dealer"]>;
type Push = InstanceType<ZeroMQ["Push"]>;

/** One rank's input and output sockets. Like the real ones they never connect again once a connection is lost. */
export class Link {
  readonly #input: Dealer;
  readonly #output: Push;
  readonly #queue: SendQueue;
  #closed = false;
  #lost = false;

  private constructor(input: Dealer, output: Push) {
    this.#input = input;
    this.#output = output;
    this.#queue = new SendQueue(output);
  }

  /** Connects the input, registers, and connects the output; returns once the output is up, which may be never. */
  static async connect(
    { Dealer, Push }: ZeroMQ,
    index: number,
    addresses: Addresses,
    registration: Uint8Array,
    events: LinkEvents,
    signal: AbortSignal,
  ): Promise<Link> {
    const input = new Dealer({ routingId: identityOf(index), linger: 0, receiveHighWaterMark: 0 });
    const output = new Push({ linger: sentinelMs });
    const link = new Link(input, output);
    const giveUp = () => link.kill();
    signal.addEventListener("abort", giveUp);
    try {
      const registered = link.#up(input, addresses.input, events);
      await registered;
      await input.send(registration);
      void receiveAll(input, events.received, () => link.#lose(events));
      await link.#up(output, addresses.output, events);
      signal.throwIfAborted();
      return link;
    } catch (error) {
      link.kill();
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  /** Queues a frame on the output. Without a frontend it goes nowhere. */
  send(frame: Uint8Array): void {
    if (!this.#closed && !this.#lost) this.#queue.push([frame], () => {});
  }

  /** Says ENGINE_CORE_DEAD, behind whatever is still queued, and closes. */
  async close(): Promise<void> {
    if (this.#closed) return;
    if (!this.#lost) {
      const sentinel = this.#queue.push([engineCoreDead], () => {});
      const until = performance.now() + sentinelMs;
      while (sentinel.state === "queued" && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 2));
    }
    this.#close();
  }

  /** Closes without a word, as a process that was killed. */
  kill(): void {
    if (this.#closed) return;
    this.#output.linger = 0;
    this.#close();
  }

  #close(): void {
    this.#closed = true;
    this.#input.close();
    this.#output.close();
  }

  /** Resolves when the connection is up; rejects when the link was closed first. */
  #up(socket: Dealer | Push, address: string, events: LinkEvents): Promise<void> {
    return new Promise((resolve, reject) => {
      socket.events.on("handshake", () => resolve());
      socket.events.on("disconnect", () => this.#lose(events));
      socket.events.on("end", () => reject(new Error("the socket was closed")));
      socket.connect(address);
    });
  }

  #lose(events: LinkEvents): void {
    if (this.#closed || this.#lost) return;
    this.#lost = true;
    // libzmq would dial again, and a frontend that took the same port would meet an engine it never registered
    this.#output.linger = 0;
    this.#input.close();
    this.#output.close();
    events.lost();
  }
}
