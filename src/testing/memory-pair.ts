import { encodeControlOutput } from "../../generated/tokenspeed/encoders.ts";
import type { ControlOutputInit, ControlRequest } from "../../generated/tokenspeed/types.ts";
import { decodeControlRequest, decodeEngineCoreReadyResponse, encodeEngineCoreReadyResponse } from "../messages.ts";
import { Frontend } from "../node/frontend.ts";
import type { Registered } from "../node/handshake.ts";
import type { Outgoing } from "../node/send-queue.ts";
import type { EngineSockets, SocketHandlers } from "../node/sockets.ts";
import type { Connection } from "../transport/connection.ts";
import { EngineWireError } from "../wire/errors.ts";
import { engineCoreDead } from "./link.ts";

/** What an engine answers; `undefined` for nothing. A promise answers later. */
export type Answer = ControlOutputInit | Uint8Array | undefined;

/** How the engines of a pair behave. */
export interface MemoryPairOptions {
  /** How many engines there are, 1 to 1024. Default 1. */
  readonly count?: number;
  /** What an engine answers to a request; one that throws ends without a word. Default nothing: answer with `send`. */
  readonly answer?: (engine: number, request: ControlRequest) => Answer | Promise<Answer>;
}

/** A connection, and the engines' side of it. */
export interface MemoryPair {
  /** The real one, down to the bytes: only the sockets are left out. */
  readonly connection: Connection;
  /** The requests that have arrived, in order. */
  readonly requests: readonly { readonly engine: number; readonly request: ControlRequest }[];
  /** Sends a reply, or any frame, from an engine. */
  send(engine: number, reply: ControlOutputInit | Uint8Array): void;
  /** Ends an engine: with its sentinel, or without a word. */
  end(engine: number, how: "sentinel" | "silently"): void;
}

/**
 * Makes a connection to engines of a test's own making, in memory: nothing is bound, nothing waits, and a test says what
 * each engine answers and when. Use `startEngine` where engines should behave as real ones. Throws `invalid_argument`.
 */
export function memoryPair(options: MemoryPairOptions = {}): MemoryPair {
  const { count = 1, answer } = options;
  if (!Number.isInteger(count) || count < 1 || count > 1024)
    throw new EngineWireError("invalid_argument", `count is a whole number from 1 to 1024, not ${count}`, { path: "count" });
  const engines = new MemoryEngines(answer);
  const registered = new Map<number, Registered>();
  for (let index = 0; index < count; index++) {
    const registration = encodeEngineCoreReadyResponse({
      vllmVersion: "tokenspeed-0.1.0",
      dataParallelSize: count,
      dataParallelRank: index,
    });
    registered.set(index, { registration: decodeEngineCoreReadyResponse(registration), dialect: "tagged" });
  }
  const connection = new Frontend(engines, registered, { eventLimit: 1024 });
  return {
    connection,
    requests: engines.requests,
    send: (engine, reply) => engines.reply(engine, reply),
    end: (engine, how) => engines.end(engine, how),
  };
}

class MemoryEngines implements EngineSockets {
  readonly requests: { readonly engine: number; readonly request: ControlRequest }[] = [];
  readonly #answer: MemoryPairOptions["answer"];
  #handlers: SocketHandlers | undefined;

  constructor(answer: MemoryPairOptions["answer"]) {
    this.#answer = answer;
  }

  deliverTo(handlers: SocketHandlers): void {
    this.#handlers = handlers;
  }

  sendInput(frames: Uint8Array[], failed: (error: unknown) => void): Outgoing {
    const [identity = new Uint8Array(2), , payload = new Uint8Array(0)] = frames;
    const engine = (identity[0] ?? 0) | ((identity[1] ?? 0) << 8);
    const request = decodeControlRequest(payload);
    this.requests.push({ engine, request });
    // never within the call that sends: a socket would not either
    queueMicrotask(() => void this.#respond(engine, request));
    return { frames, failed, state: "sent" };
  }

  async close(): Promise<void> {
    this.#handlers = undefined;
  }

  reply(engine: number, reply: ControlOutputInit | Uint8Array): void {
    this.#handlers?.output(engine, [reply instanceof Uint8Array ? reply : encodeControlOutput(reply)]);
  }

  end(engine: number, how: "sentinel" | "silently"): void {
    if (how === "sentinel") this.reply(engine, engineCoreDead);
    else this.#handlers?.lost(engine);
  }

  async #respond(engine: number, request: ControlRequest): Promise<void> {
    try {
      const reply = await this.#answer?.(engine, request);
      if (reply !== undefined) this.reply(engine, reply);
    } catch {
      this.end(engine, "silently");
    }
  }
}
