import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";

const asBinary = { binary: true, compress: false } as const;

/** What a message costs while it waits, besides its bytes: `ws` and the stream keep objects for each. Measured, and rounded up. */
const messageBytes = 512;

/**
 * Writes to one client. What is sent in one turn of the event loop leaves in one write, since each costs a system call. What
 * the client does not read is counted: `ws` itself would queue without end.
 */
export class Outbox {
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  readonly #most: number;
  readonly #overflow: () => void;
  readonly #waiters: (() => void)[] = [];
  /** The same function for all messages: one has been handed to the system. */
  readonly #left = (): void => {
    this.#messages--;
    if (this.#waiters.length > 0 && this.hasRoom) this.#wake();
  };
  #messages = 0;
  /** Length of the first message that waits. */
  #first = 0;
  /** What ends the turn in which something was sent. */
  #corked: NodeJS.Immediate | undefined;
  #closed = false;

  /** Calls `overflow`, once, when more than `most` bytes wait behind a first message. */
  constructor(socket: WebSocket, stream: Duplex, most: number, overflow: () => void) {
    this.#socket = socket;
    this.#stream = stream;
    this.#most = most;
    this.#overflow = overflow;
  }

  /** Bytes that wait for the client, with what keeping them costs. */
  get waiting(): number {
    return this.#socket.bufferedAmount + this.#messages * messageBytes;
  }

  /** Sends a message; none after `close`. */
  send(message: Uint8Array): void {
    if (this.#closed) return;
    // only here can it be longer than all that may wait
    if (this.#messages === 0) this.#first = message.length;
    if (this.#corked === undefined) {
      this.#stream.cork();
      this.#corked = setImmediate(() => this.flush());
    }
    this.#messages++;
    this.#socket.send(message, asBinary, this.#left);
    this.#check();
  }

  /** Writes what was sent in this turn, where nothing else is to come in it. */
  flush(): void {
    if (this.#corked === undefined) return;
    clearImmediate(this.#corked);
    this.#corked = undefined;
    this.#stream.uncork();
  }

  /** Answers a ping of the protocol's own: without a bound, pings of a client that does not read would fill the memory. */
  pong(data: Uint8Array): void {
    if (this.#closed) return;
    if (this.#messages === 0) this.#first = 0;
    this.#messages++;
    this.#socket.pong(data, false, this.#left);
    this.#check();
  }

  /** Whether little waits for the client, so that what may wait does not stand in the way of what should not; also after `close`. */
  get hasRoom(): boolean {
    return this.#closed || this.waiting <= this.#most / 4;
  }

  /** Resolves when there may be room again: others wait for it too. */
  room(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** Sends nothing any more. */
  close(): void {
    this.#closed = true;
    this.#wake();
  }

  #check(): void {
    if (this.waiting <= this.#most + this.#first) return;
    this.close();
    this.#overflow();
  }

  #wake(): void {
    for (const resolve of this.#waiters.splice(0)) resolve();
  }
}
