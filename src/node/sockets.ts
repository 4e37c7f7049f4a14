import type { Pull, Router } from "zeromq";
import { bindFailed } from "./address.ts";
import type { ResolvedBindOptions } from "./bind-options.ts";
import { watchOutput } from "./output-watch.ts";
import { receiveAll } from "./receive-loop.ts";
import { type Outgoing, SendQueue } from "./send-queue.ts";
import { loadZeroMQ } from "./zeromq.ts";

/** How long to wait for an address to be freed, in milliseconds. */
const unbindMs = 500;

/** Told what arrives on the frontend's sockets. None of these may throw. */
export interface SocketHandlers {
  handshake(frames: Uint8Array[]): void;
  input(frames: Uint8Array[]): void;
  output(engine: number, frames: Uint8Array[]): void;
  /** An engine's output has connected. */
  connected(engine: number): void;
  /** An engine's output is gone. */
  lost(engine: number): void;
  /** A socket of ours failed to read. */
  failed(error: unknown): void;
}

/** What carries messages to engines that are registered, and back. */
export type EngineSockets = Pick<FrontendSockets, "deliverTo" | "sendInput" | "close">;

/**
 * The frontend's sockets: handshake ROUTER, input ROUTER, and one output PULL for each engine, which is what attributes a
 * reply to its engine. One send queue and one receive loop each; what arrives goes to the present handlers.
 */
export class FrontendSockets {
  readonly #handshake: Router;
  readonly #input: Router;
  readonly #outputs: ReadonlyMap<number, Pull>;
  readonly #handshakeQueue: SendQueue;
  readonly #inputQueue: SendQueue;
  readonly #lingerMs: number;
  #handlers: SocketHandlers | undefined;
  #loops: Promise<unknown> = Promise.resolve();

  private constructor(handshake: Router, input: Router, outputs: ReadonlyMap<number, Pull>, lingerMs: number) {
    this.#lingerMs = lingerMs;
    this.#handshake = handshake;
    this.#input = input;
    this.#outputs = outputs;
    this.#handshakeQueue = new SendQueue(handshake);
    this.#inputQueue = new SendQueue(input);
  }

  /** Opens and binds all of them, or none. Throws `transport_unavailable`, `address_unavailable`. */
  static async open(options: ResolvedBindOptions): Promise<FrontendSockets> {
    const { Router, Pull } = await loadZeroMQ();
    const { lingerMs: linger, sendHighWaterMark, sendTimeoutMs: sendTimeout } = options;
    // mandatory: a message for an engine that is not there is an error, not silence
    const routing = { linger, mandatory: true, sendHighWaterMark, sendTimeout };
    const outputs = new Map<number, Pull>();
    for (let engine = options.first; engine < options.first + options.count; engine++) {
      // an engine does not wait for a frontend that reads slowly, so a limit here would only lose replies
      outputs.set(engine, new Pull({ linger: 0, receiveHighWaterMark: 0 }));
    }
    // handover: an engine started again under an index whose last process still hangs there is heard, not mute
    const sockets = new FrontendSockets(new Router({ ...routing, handover: true }), new Router(routing), outputs, linger);
    try {
      await bindOne(sockets.#handshake, options.handshake);
      await bindOne(sockets.#input, options.input);
      for (const pull of outputs.values()) await bindOne(pull, options.output);
    } catch (error) {
      await sockets.#unbind();
      await sockets.close();
      throw error;
    }
    return sockets;
  }

  /** Frees the addresses: closing alone does so some time after it has returned, when another may want them already. */
  async #unbind(): Promise<void> {
    const bound = [this.#handshake, this.#input, ...this.#outputs.values()].filter(({ lastEndpoint }) => lastEndpoint !== null);
    await Promise.all(bound.map((socket) => unbindOne(socket, socket.lastEndpoint ?? "")));
  }

  /** The addresses that were bound, ports filled in. */
  get addresses(): { readonly handshake: string; readonly input: string; readonly outputs: ReadonlyMap<number, string> } {
    const outputs = new Map([...this.#outputs].map(([engine, pull]) => [engine, pull.lastEndpoint ?? ""]));
    return { handshake: this.#handshake.lastEndpoint ?? "", input: this.#input.lastEndpoint ?? "", outputs };
  }

  /** Starts reading, or hands what comes from now on to other handlers. */
  deliverTo(handlers: SocketHandlers): void {
    const reading = this.#handlers !== undefined;
    this.#handlers = handlers;
    if (reading) return;
    const failed = (error: unknown) => this.#handlers?.failed(error);
    const loops: Promise<unknown>[] = [
      receiveAll(this.#handshake, (frames) => this.#handlers?.handshake(frames), failed),
      receiveAll(this.#input, (frames) => this.#handlers?.input(frames), failed),
    ];
    for (const [engine, pull] of this.#outputs) {
      loops.push(
        receiveAll(pull, (frames) => this.#handlers?.output(engine, frames), failed),
        watchOutput(pull, { connected: () => this.#handlers?.connected(engine), lost: () => this.#handlers?.lost(engine) }),
      );
    }
    this.#loops = Promise.all(loops);
  }

  /** Queues a message on the handshake socket. */
  sendHandshake(frames: Uint8Array[], failed: (error: unknown) => void): Outgoing {
    return this.#handshakeQueue.push(frames, failed);
  }

  /** Queues a message on the input socket. */
  sendInput(frames: Uint8Array[], failed: (error: unknown) => void): Outgoing {
    return this.#inputQueue.push(frames, failed);
  }

  /** Hands over what is queued for engines, closes all of them, and waits until nothing reads any more. */
  async close(): Promise<void> {
    await this.#inputQueue.drained(this.#lingerMs);
    this.#handshake.close();
    this.#input.close();
    for (const pull of this.#outputs.values()) pull.close();
    await this.#loops;
  }
}

async function bindOne(socket: Router | Pull, address: string): Promise<void> {
  try {
    await socket.bind(address);
  } catch (cause) {
    throw bindFailed(address, cause);
  }
}

/** Resolves when the address is free, or could not be freed in a short time: closing will do so. */
async function unbindOne(socket: Router | Pull, address: string): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  await new Promise<void>((resolve) => {
    timer = setTimeout(resolve, unbindMs);
    socket.events.on("close", () => resolve());
    socket.unbind(address).catch(() => resolve());
  });
  clearTimeout(timer);
}
