import { decodeHandshakeInitMessage } from "../../generated/tokenspeed/decoders.ts";
import { encodeReadyMessage } from "../../generated/tokenspeed/encoders.ts";
import type { ZeroMQ } from "../node/zeromq.ts";
import { EngineWireError, isEngineWireError } from "../wire/errors.ts";

/** What goes wrong in a handshake. */
export interface HandshakeFault {
  /**
   * `second-hello`: HELLO twice. `ready-first`: READY in place of HELLO. `unknown-status`: a HELLO of another status.
   * `two-frames`: HELLO behind an empty frame. `garbage-hello`: a HELLO that is no MessagePack. `no-ready`: nothing after
   * INIT. `no-registration`: READY, then nothing.
   */
  readonly kind: "second-hello" | "ready-first" | "unknown-status" | "two-frames" | "garbage-hello" | "no-ready" | "no-registration";
  /** The one rank it happens on; absent means every rank. */
  readonly rank?: number;
}

/** Where one engine was told to connect. */
export interface Addresses {
  readonly input: string;
  readonly output: string;
  /** Closes the handshake's socket, which an engine does once its others are up. */
  readonly release: () => void;
}

/** An engine's index as the identity of its DEALER sockets: two bytes, little-endian. */
export function identityOf(index: number): string {
  // zeromq.js takes a Buffer here too, and only a Buffer can hold every byte
  return Buffer.from([index & 0xff, index >> 8]) as unknown as string;
}

/** READY and HELLO look the same but for their status. */
function status(text: string): Uint8Array {
  return encodeReadyMessage({ status: text, local: true, headless: true });
}

function opening(kind: HandshakeFault["kind"] | undefined): Uint8Array[][] {
  const hello = status("HELLO");
  switch (kind) {
    case "second-hello":
      return [[hello], [hello]];
    case "ready-first":
      return [[status("READY")]];
    case "unknown-status":
      return [[status("GOODBYE")]];
    case "two-frames":
      return [[new Uint8Array(), hello]];
    case "garbage-hello":
      return [[Uint8Array.of(0xc1)]];
    default:
      return [[hello]];
  }
}

/** What a handshake takes. */
export interface HandshakeOptions {
  readonly address: string;
  readonly index: number;
  readonly initTimeoutMs: number;
  readonly fault: HandshakeFault["kind"] | undefined;
  /** Told when a faulty opening is out, after which no INIT may ever come. */
  readonly opened: () => void;
  readonly signal: AbortSignal;
}

/**
 * HELLO, INIT, READY on a socket of its own, dialled until the frontend answers. Gives the addresses of INIT, of which an
 * engine takes the first ones; `undefined` after the fault `no-ready`. Throws `handshake_failed` or `handshake_timeout`.
 */
export async function shakeHands({ Dealer }: ZeroMQ, options: HandshakeOptions): Promise<Addresses | undefined> {
  // READY is on its way when the socket closes
  const socket = new Dealer({ routingId: identityOf(options.index), linger: 1000 });
  let late = false;
  const giveUp = () => {
    if (socket.closed) return;
    // HELLO may wait for a frontend that is not there, and would keep the process
    socket.linger = 0;
    socket.close();
  };
  const timer = setTimeout(() => {
    late = true;
    giveUp();
  }, options.initTimeoutMs);
  options.signal.addEventListener("abort", giveUp);
  try {
    socket.connect(options.address);
    for (const frames of opening(options.fault)) await socket.send(frames);
    if (options.fault !== undefined && options.fault !== "no-registration" && options.fault !== "no-ready") options.opened();
    const init = (await socket.receive()).at(-1);
    if (options.fault === "no-ready") {
      socket.close();
      return undefined;
    }
    const { inputs, outputs } = decodeHandshakeInitMessage(init ?? new Uint8Array()).addresses;
    await socket.send(status("READY"));
    const [input, output] = [inputs[0], outputs[0]];
    if (input !== undefined && output !== undefined) return { input, output, release: () => socket.close() };
    throw new EngineWireError("handshake_failed", "INIT carried no input or output address", { engine: options.index, stage: "init" });
  } catch (cause) {
    if (isEngineWireError(cause) && cause.code === "handshake_failed") {
      socket.close();
      throw cause;
    }
    giveUp();
    options.signal.throwIfAborted();
    if (late) {
      const text = `the frontend sent no INIT within ${options.initTimeoutMs} ms`;
      throw new EngineWireError("handshake_timeout", text, { engine: options.index, stage: "init", cause });
    }
    const text = `engine ${options.index}: ${(cause as Error).message}`;
    throw new EngineWireError("handshake_failed", text, { engine: options.index, stage: "init", cause });
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener("abort", giveUp);
  }
}
