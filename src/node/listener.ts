import type { Connection } from "../transport/connection.ts";
import { checkSignal, checkTimeout, limit } from "../transport/timeouts.ts";
import { EngineWireError, isEngineWireError } from "../wire/errors.ts";
import { advertise } from "./address.ts";
import { type AcceptOptions, type BindOptions, type ResolvedBindOptions, resolveBindOptions } from "./bind-options.ts";
import { Frontend, isDeathSentinel } from "./frontend.ts";
import { Handshake } from "./handshake.ts";
import { FrontendSockets } from "./sockets.ts";

/** A bound frontend that waits for its engines. */
export interface Listener extends AsyncDisposable {
  /** The address engines are started with, with its real port. */
  readonly handshakeAddress: string;
  /** The input address that engines are told. */
  readonly inputAddress: string;
  /** The output address that each engine is told, in index order. */
  readonly outputAddresses: readonly string[];
  /**
   * Completes the handshake with all engines and waits until the output of each is connected. Once only: engines
   * handshake once, so after a failure the listener is closed. Throws `handshake_failed`, `handshake_timeout`, `aborted`,
   * `closed`, `invalid_argument`.
   */
  accept(options?: AcceptOptions): Promise<Connection>;
  /** Closes the listener, and the connection made from it. */
  close(): Promise<void>;
}

/** Binds the frontend's sockets; engines dial in. Throws `invalid_argument`, `address_unavailable`, `transport_unavailable`. */
export async function bind(options: BindOptions): Promise<Listener> {
  const resolved = resolveBindOptions(options);
  const sockets = await FrontendSockets.open(resolved);
  try {
    return new BoundListener(sockets, resolved);
  } catch (error) {
    await sockets.close();
    throw error;
  }
}

/** Binds and accepts in one step. Throws what `bind` and `accept` throw. */
export async function connect(options: BindOptions & AcceptOptions): Promise<Connection> {
  const listener = await bind(options);
  return listener.accept(options);
}

class BoundListener implements Listener {
  readonly handshakeAddress: string;
  readonly inputAddress: string;
  readonly outputAddresses: readonly string[];
  readonly #sockets: FrontendSockets;
  readonly #options: ResolvedBindOptions;
  #state: "bound" | "accepting" | "accepted" | "closed" = "bound";
  #connection: Connection | undefined;
  #giveUp: ((error: EngineWireError) => void) | undefined;

  constructor(sockets: FrontendSockets, options: ResolvedBindOptions) {
    const { handshake, input, outputs } = sockets.addresses;
    this.#sockets = sockets;
    this.#options = options;
    this.handshakeAddress = handshake;
    this.inputAddress = advertise(input, options.advertisedHost);
    this.outputAddresses = [...outputs.values()].map((output) => advertise(output, options.advertisedHost));
  }

  async accept(options: AcceptOptions = {}): Promise<Connection> {
    const timeoutMs = checkTimeout(options.timeoutMs ?? 600_000);
    const { signal } = options;
    if (signal !== undefined) checkSignal(signal);
    if (this.#state === "closed") throw new EngineWireError("closed", "the listener is closed");
    if (this.#state !== "bound") throw new EngineWireError("invalid_argument", "accept was called before; a listener accepts once");
    this.#state = "accepting";
    try {
      const connection = await this.#handshake(timeoutMs, signal);
      await connection.probe(this.#options.probeTimeoutMs, signal);
      return connection;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#state = "closed";
    this.#giveUp?.(new EngineWireError("closed", "the listener was closed while it waited for engines"));
    await (this.#connection ?? this.#sockets).close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #handshake(timeoutMs: number, signal: AbortSignal | undefined): Promise<Frontend> {
    const { first, count } = this.#options;
    const outputOf = (engine: number) => this.outputAddresses[engine - first] ?? "";
    const handshake = new Handshake(first, count, (engine) => ({ inputs: [this.inputAddress], outputs: [outputOf(engine)] }));
    return new Promise((resolve, reject) => {
      let stop = (): void => {};
      const fail = (error: unknown): void => {
        stop();
        this.#giveUp = undefined;
        reject(isEngineWireError(error) ? error : new EngineWireError("handshake_failed", "a socket failed", { cause: error }));
      };
      this.#giveUp = fail;
      const advance = (step: () => void): void => {
        if (this.#giveUp !== fail) return;
        try {
          step();
        } catch (error) {
          fail(error);
          return;
        }
        const registered = handshake.complete;
        if (registered === undefined) return;
        stop();
        this.#giveUp = undefined;
        this.#state = "accepted";
        // here and not after the await: what closes the listener in between must close the connection
        const connection = new Frontend(this.#sockets, registered, this.#options);
        this.#connection = connection;
        resolve(connection);
      };
      if (signal?.aborted) {
        fail(new EngineWireError("aborted", "the signal was aborted before engines were accepted", { cause: signal.reason }));
        return;
      }
      stop = limit(timeoutMs, signal, {
        expired: () => fail(handshake.timedOut(timeoutMs)),
        aborted: (cause) => fail(new EngineWireError("aborted", "accepting engines was aborted", { cause })),
      });
      const ended = (engine: number, why: string): EngineWireError =>
        new EngineWireError("handshake_failed", `engine ${engine}, stage output: ${why}`, { engine, stage: "output" });
      this.#sockets.deliverTo({
        handshake: (frames) =>
          advance(() => {
            const answer = handshake.receive(frames);
            if (answer !== undefined) this.#sockets.sendHandshake(answer, fail);
          }),
        input: (frames) => advance(() => handshake.register(frames)),
        output: (engine, frames) => {
          if (isDeathSentinel(frames)) fail(ended(engine, "it shut down during the handshake"));
        },
        connected: (engine) => advance(() => handshake.outputConnected(engine)),
        lost: (engine) => fail(ended(engine, "it disconnected during the handshake")),
        failed: fail,
      });
    });
  }
}
