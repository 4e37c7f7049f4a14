/** A socket that takes one send at a time. */
export interface Sender {
  send(frames: Uint8Array[]): Promise<void>;
}

/** A message on its way to the socket. */
export interface Outgoing {
  readonly frames: Uint8Array[];
  /** Told why, when the socket refuses the message. */
  readonly failed: (error: unknown) => void;
  /** `queued` until the socket has been given it, then `sent` for good, also when the socket refused it. */
  state: "queued" | "sent" | "cancelled";
}

/**
 * The only writer of a socket: zeromq.js throws EBUSY on a send during another, so callers queue here. Order on the wire
 * is the order of `push`. It needs no bound of its own: lanes let at most one call of a kind out per engine, and whoever sends
 * requests to generate bounds them.
 */
export class SendQueue {
  readonly #socket: Sender;
  readonly #waiting: Outgoing[] = [];
  #writing = false;
  /** Resolves when the last run of writes has ended. */
  #written: Promise<void> = Promise.resolve();

  constructor(socket: Sender) {
    this.#socket = socket;
  }

  /** Queues a message; when the socket is idle it is handed over before this returns. */
  push(frames: Uint8Array[], failed: (error: unknown) => void): Outgoing {
    const outgoing: Outgoing = { frames, failed, state: "queued" };
    this.#waiting.push(outgoing);
    if (!this.#writing) this.#written = this.#write();
    return outgoing;
  }

  /** Resolves when everything queued so far has been handed over, or after some time. */
  async drained(withinMs: number): Promise<void> {
    if (!this.#writing) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, withinMs);
    });
    await Promise.race([this.#written, late]);
    clearTimeout(timer);
  }

  async #write(): Promise<void> {
    this.#writing = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      if (next.state === "cancelled") continue;
      next.state = "sent";
      try {
        await this.#socket.send(next.frames);
      } catch (error) {
        next.failed(error);
      }
    }
    this.#writing = false;
  }
}
