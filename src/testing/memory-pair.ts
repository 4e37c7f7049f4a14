import {
  type BatchTokenIDOutSlimInit,
  type ControlOutputInit,
  type ControlRequest,
  decodeAbortRids,
  decodeControlRequest,
  decodeEngineCoreReadyResponse,
  decodeTokenizedGenerateReqInput,
  encodeBatchTokenIDOutSlim,
  encodeControlOutput,
  encodeEngineCoreReadyResponse,
  type TokenizedGenerateReqInput,
} from "../messages.ts";
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
  /** The batches of output with which an engine answers a request to generate. Default none: send them with `send`. */
  readonly generate?: (engine: number, request: TokenizedGenerateReqInput) => readonly BatchTokenIDOutSlimInit[];
}

/** A connection, and the engines' side of it. */
export interface MemoryPair {
  /** The real one, down to the bytes: only the sockets are left out. */
  readonly connection: Connection;
  /** The requests that have arrived, in order. */
  readonly requests: readonly { readonly engine: number; readonly request: ControlRequest }[];
  /** The requests to generate that have arrived, in order. */
  readonly generations: readonly { readonly engine: number; readonly request: TokenizedGenerateReqInput }[];
  /** The ids that were aborted, in order. */
  readonly aborts: readonly { readonly engine: number; readonly rid: string }[];
  /** Sends a reply, a batch of output, or any frame, from an engine. */
  send(engine: number, message: ControlOutputInit | BatchTokenIDOutSlimInit | Uint8Array): void;
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
  const engines = new MemoryEngines(answer, options.generate);
  const registered = new Map<number, Registered>();
  for (let index = 0; index < count; index++) {
    const registration = encodeEngineCoreReadyResponse({
      vllmVersion: "tokenspeed-0.1.0",
      dataParallelSize: count,
      dataParallelRank: index,
    });
    registered.set(index, { registration: decodeEngineCoreReadyResponse(registration), dialect: "tagged" });
  }
  const connection = new Frontend(engines, registered, { eventLimit: 1024, routing: "round-robin" });
  return {
    connection,
    requests: engines.requests,
    generations: engines.generations,
    aborts: engines.aborts,
    send: (engine, message) => engines.send(engine, message),
    end: (engine, how) => engines.end(engine, how),
  };
}

class MemoryEngines implements EngineSockets {
  readonly requests: { readonly engine: number; readonly request: ControlRequest }[] = [];
  readonly generations: { readonly engine: number; readonly request: TokenizedGenerateReqInput }[] = [];
  readonly aborts: { readonly engine: number; readonly rid: string }[] = [];
  readonly #answer: MemoryPairOptions["answer"];
  readonly #generate: MemoryPairOptions["generate"];
  #handlers: SocketHandlers | undefined;

  constructor(answer: MemoryPairOptions["answer"], generate: MemoryPairOptions["generate"]) {
    this.#answer = answer;
    this.#generate = generate;
  }

  deliverTo(handlers: SocketHandlers): void {
    this.#handlers = handlers;
  }

  sendInput(frames: Uint8Array[], failed: (error: unknown) => void): Outgoing {
    const [identity = new Uint8Array(2), type, payload = new Uint8Array(0), ...tensors] = frames;
    const engine = (identity[0] ?? 0) | ((identity[1] ?? 0) << 8);
    if (type?.[0] === 0x00) this.#add(engine, decodeTokenizedGenerateReqInput([payload, ...tensors]));
    else if (type?.[0] === 0x01) for (const rid of decodeAbortRids(payload)) this.aborts.push({ engine, rid });
    else this.#call(engine, decodeControlRequest(payload));
    return { frames, failed, state: "sent" };
  }

  async close(): Promise<void> {
    this.#handlers = undefined;
  }

  send(engine: number, message: ControlOutputInit | BatchTokenIDOutSlimInit | Uint8Array): void {
    this.#handlers?.output(engine, [encoded(message)]);
  }

  end(engine: number, how: "sentinel" | "silently"): void {
    if (how === "sentinel") this.send(engine, engineCoreDead);
    else this.#handlers?.lost(engine);
  }

  // never within the call that sends: a socket would not either
  #call(engine: number, request: ControlRequest): void {
    this.requests.push({ engine, request });
    queueMicrotask(() => void this.#respond(engine, request));
  }

  #add(engine: number, request: TokenizedGenerateReqInput): void {
    this.generations.push({ engine, request });
    const batches = this.#generate?.(engine, request) ?? [];
    queueMicrotask(() => {
      for (const batch of batches) this.send(engine, batch);
    });
  }

  async #respond(engine: number, request: ControlRequest): Promise<void> {
    try {
      const reply = await this.#answer?.(engine, request);
      if (reply !== undefined) this.send(engine, reply);
    } catch {
      this.end(engine, "silently");
    }
  }
}

function encoded(message: ControlOutputInit | BatchTokenIDOutSlimInit | Uint8Array): Uint8Array {
  if (message instanceof Uint8Array) return message;
  return "outputIds" in message ? encodeBatchTokenIDOutSlim(message) : encodeControlOutput(message);
}
