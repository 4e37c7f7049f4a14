import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";

const asBinary = { binary: true, compress: false } as const;

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
  #corked = false;
  #closed = false;

  /** Calls `overflow`, once, when more than `most` bytes wait. */
  constructor(socket: WebSocket, stream: Duplex, most: number, overflow: () => void) {
    this.#socket = socket;
    this.#stream = stream;
    this.#most = most;
    this.#overflow = overflow;
  }

  /** Bytes that wait for the client. */
  get waiting(): number {
    return this.#socket.bufferedAmount;
  }

  /** Sends a message; none after `close`. */
  send(message: Uint8Array): void {
    if (this.#closed) return;
    if (!this.#corked) {
      this.#corked = true;
      this.#stream.cork();
      setImmediate(() => {
        this.#corked = false;
        this.#stream.uncork();
      });
    }
    this.#socket.send(message, asBinary);
    if (this.#socket.bufferedAmount <= this.#most) return;
    this.close();
    this.#overflow();
  }

  /** Resolves when little waits for the client, so that what may wait does not stand in the way of what should not; and after `close`. */
  async room(): Promise<void> {
    while (!this.#closed && this.#socket.bufferedAmount > this.#most / 4)
      await new Promise<void>((resolve) => {
        this.#waiters.push(resolve);
        if (this.#waiters.length === 1) this.#stream.once("drain", () => this.#wake());
      });
  }

  /** Sends nothing any more. */
  close(): void {
    this.#closed = true;
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiters.splice(0)) resolve();
  }
}
