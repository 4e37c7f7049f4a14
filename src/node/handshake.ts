import {
  decodeEngineCoreReadyResponse,
  decodeReadyMessage,
  type EngineCoreReadyResponse,
  encodeHandshakeInitMessage,
  type HandshakeAddressesInit,
} from "../messages.ts";
import type { ControlDialect } from "../transport/capabilities.ts";
import { EngineWireError } from "../wire/errors.ts";
import { announcesSlim } from "./slim-dialect.ts";

/** How far an engine has come. */
export type HandshakeStage = "hello" | "ready" | "registration" | "output" | "done";

/** What an engine said when it registered. */
export interface Registered {
  readonly registration: EngineCoreReadyResponse;
  /** The dialect of control messages it announced. */
  readonly dialect: ControlDialect;
}

interface Progress {
  said: boolean;
  ready: boolean;
  registered?: Registered;
  output: boolean;
}

/**
 * The frontend's side of the handshake, without sockets: takes the messages that arrive and says what to answer and when
 * all engines are there. Protocol errors throw `handshake_failed`, naming engine and stage.
 */
export class Handshake {
  readonly #engines = new Map<number, Progress>();
  readonly #first: number;
  readonly #addresses: (engine: number) => HandshakeAddressesInit;

  /** Expects engines `first` to `first + count - 1`; `addresses` says where each one connects. */
  constructor(first: number, count: number, addresses: (engine: number) => HandshakeAddressesInit) {
    this.#first = first;
    this.#addresses = addresses;
    for (let engine = first; engine < first + count; engine++) this.#engines.set(engine, { said: false, ready: false, output: false });
  }

  /** Takes a message of the handshake socket and returns the frames of the answer to HELLO. */
  receive(frames: readonly Uint8Array[]): Uint8Array[] | undefined {
    const [identity, payload] = frames;
    if (identity === undefined || payload === undefined || frames.length !== 2) {
      throw failed(undefined, "hello", `expected the frames identity and message, got ${frames.length}`);
    }
    const engine = engineOf(identity);
    const progress = this.#expected(engine, identity, "hello");
    const stage = progress.said ? "ready" : "hello";
    const { status } = decodeOrFail(engine, stage, () => decodeReadyMessage(payload));
    if (status === "HELLO") {
      if (progress.said) {
        throw failed(engine, stage, "a second HELLO; is another engine running with the same index?");
      }
      progress.said = true;
      return [identity, encodeHandshakeInitMessage({ addresses: this.#addresses(engine) })];
    }
    if (status !== "READY") throw failed(engine, stage, `expected status HELLO or READY, got ${status === null ? "nil" : `"${status}"`}`);
    if (!progress.said) throw failed(engine, stage, "READY before HELLO");
    if (progress.ready) throw failed(engine, stage, "a second READY");
    progress.ready = true;
    return undefined;
  }

  /** Takes a message of the input socket: an engine's registration. */
  register(frames: readonly Uint8Array[]): void {
    const [identity, payload] = frames;
    if (identity === undefined || payload === undefined || frames.length !== 2) {
      throw failed(undefined, "registration", `expected the frames identity and registration, got ${frames.length}`);
    }
    const engine = engineOf(identity);
    const progress = this.#expected(engine, identity, "registration");
    if (progress.registered !== undefined) throw failed(engine, "registration", "it registered twice");
    if (!progress.said) throw failed(engine, "registration", "it registered before HELLO");
    if (payload.length === 0) throw failed(engine, "registration", "an empty registration");
    const registration = decodeOrFail(engine, "registration", () => decodeEngineCoreReadyResponse(payload));
    this.#checkGroup(engine, registration);
    progress.registered = { registration, dialect: announcesSlim(payload) ? "slim" : "tagged" };
  }

  /** Notes that an engine's output is connected. */
  outputConnected(engine: number): void {
    const progress = this.#engines.get(engine);
    if (progress !== undefined) progress.output = true;
  }

  /** What the engines registered, by index, once every engine has come all the way. */
  get complete(): Map<number, Registered> | undefined {
    const engines = new Map<number, Registered>();
    for (const [engine, { said, ready, registered, output }] of this.#engines) {
      if (!said || !ready || registered === undefined || !output) return undefined;
      engines.set(engine, registered);
    }
    return engines;
  }

  /** The error for engines that have not come all the way in time. */
  timedOut(timeoutMs: number): EngineWireError {
    const waiting = [...this.#engines].map(([engine, progress]) => ({ engine, stage: stageOf(progress) }));
    const missing = waiting.filter(({ stage }) => stage !== "done");
    const list = missing.map(({ engine, stage }) => `engine ${engine} (waiting for ${stageNames[stage]})`).join(", ");
    const details = {
      missing: missing.map(({ engine }) => engine),
      ...(missing[0] && { engine: missing[0].engine, stage: missing[0].stage }),
    };
    return new EngineWireError("handshake_timeout", `after ${timeoutMs} ms not all engines are connected: ${list}`, details);
  }

  #expected(engine: number, identity: Uint8Array, stage: HandshakeStage): Progress {
    const progress = this.#engines.get(engine);
    if (progress !== undefined) return progress;
    const last = this.#first + this.#engines.size - 1;
    const expected = this.#first === last ? `engine ${last}` : `engines ${this.#first} to ${last}`;
    const found = identity.length === 2 ? `index ${engine}` : `an identity of ${identity.length} bytes`;
    throw failed(identity.length === 2 ? engine : undefined, stage, `expected ${expected}, got ${found}`);
  }

  /** A gated operation is answered when the whole attention-DP group holds it: part of a group would never answer. */
  #checkGroup(engine: number, { dataParallelRank: rank, dataParallelSize: size }: EngineCoreReadyResponse): void {
    const start = engine - rank;
    if (size >= 1 && rank >= 0 && rank < size && start >= this.#first && start + size <= this.#first + this.#engines.size) return;
    throw failed(
      engine,
      "registration",
      `it is rank ${rank} of a data-parallel group of ${size}, and engines ${start} to ${start + size - 1} are not all expected here`,
    );
  }
}

const stageNames: Readonly<Record<HandshakeStage, string>> = {
  hello: "HELLO",
  ready: "READY",
  registration: "its registration",
  output: "its output to connect",
  done: "nothing",
};

function stageOf({ said, ready, registered, output }: Progress): HandshakeStage {
  if (!said) return "hello";
  if (!ready) return "ready";
  if (registered === undefined) return "registration";
  return output ? "done" : "output";
}

function failed(engine: number | undefined, stage: HandshakeStage, why: string, cause?: unknown): EngineWireError {
  const who = engine === undefined ? "an engine" : `engine ${engine}`;
  return new EngineWireError("handshake_failed", `${who}, stage ${stage}: ${why}`, {
    stage,
    ...(engine !== undefined && { engine }),
    ...(cause !== undefined && { cause }),
  });
}

function decodeOrFail<T>(engine: number, stage: HandshakeStage, decode: () => T): T {
  try {
    return decode();
  } catch (cause) {
    throw failed(engine, stage, `a message that does not decode (${(cause as Error).message})`, cause);
  }
}

/** The index in a routing identity: two bytes, little-endian; -1 for anything else. */
export function engineOf(identity: Uint8Array): number {
  const [low, high] = identity;
  return identity.length === 2 && low !== undefined && high !== undefined ? low | (high << 8) : -1;
}

/** The routing identity of an engine. */
export function identityOf(engine: number): Uint8Array {
  return Uint8Array.of(engine & 0xff, engine >> 8);
}
