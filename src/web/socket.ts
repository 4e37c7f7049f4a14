import { decodeRefused, peekTag } from "../../generated/relay/decoders.ts";
import type { RelayMessage } from "../../generated/relay/types.ts";
import { fromFailure } from "../transport/relay/failure.ts";
import { closeCodes, subprotocol } from "../transport/relay/protocol.ts";
import { EngineWireError, isEngineWireError } from "../wire/errors.ts";

/** A constructor of WebSockets: the platform's, or that of `ws`. What it makes is used as browsers define it. */
export type WebSocketClass = new (url: string, protocols: string[]) => object;

/** The parts of a WebSocket in use. */
interface Socket {
  binaryType: string;
  onopen: (() => void) | null;
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  onclose: ((event: { readonly code: number; readonly reason: string }) => void) | null;
  onerror: (() => void) | null;
  send(data: Uint8Array): void;
  close(code?: number, reason?: string): void;
}

/** One WebSocket to a relay; it speaks whole messages of the protocol and ends once. */
export class RelaySocket {
  /** When something came last, in milliseconds of `performance.now()`. */
  heardAt = performance.now();
  readonly #socket: Socket;
  readonly #ended: (error: EngineWireError) => void;
  #refusal: EngineWireError | undefined;
  #opened = false;
  #over = false;

  /**
   * Sends what `hello` resolves with when it is open. Hands on messages as they came: their decoders weigh much, and a
   * small page needs few. Calls `ended` once, with why; whatever is sent after that is dropped.
   * Throws `invalid_argument` for a URL that no WebSocket takes.
   */
  constructor(
    Class: WebSocketClass,
    url: string,
    hello: () => Promise<Uint8Array>,
    received: (tag: RelayMessage["$tag"], message: Uint8Array) => void,
    ended: (error: EngineWireError) => void,
  ) {
    this.#ended = ended;
    let socket: Socket;
    try {
      // both kinds of WebSocket have these members, under types of their own
      socket = new Class(url, [subprotocol]) as unknown as Socket;
    } catch (cause) {
      throw new EngineWireError("invalid_argument", "url is none that a WebSocket takes, such as wss://relay.example/", {
        path: "url",
        cause,
      });
    }
    this.#socket = socket;
    // before the first message: a browser would hand over Blobs
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.#opened = true;
      hello().then(
        (bytes) => this.send(bytes),
        (error: unknown) => this.fail(asCredentialError(error)),
      );
    };
    socket.onmessage = ({ data }) => {
      if (this.#over) return;
      this.heardAt = performance.now();
      try {
        if (!(data instanceof ArrayBuffer)) throw new EngineWireError("malformed", "the relay sent a text message");
        const message = new Uint8Array(data);
        const tag = peekTag(message) as RelayMessage["$tag"] | undefined;
        if (tag === undefined) throw new EngineWireError("malformed", "the relay sent a message without a tag");
        const refused = tag === "Refused" ? decodeRefused(message) : undefined;
        if (refused?.id === null) this.#refusal = fromFailure(refused.failure);
        else received(tag, message);
      } catch (error) {
        this.fail(isEngineWireError(error) ? error : new EngineWireError("malformed", "a message could not be read", { cause: error }));
      }
    };
    socket.onclose = ({ code, reason }) => this.#end(this.#refusal ?? reasonOf(this.#opened, code, reason));
    socket.onerror = () => {};
  }

  /** Sends a message. */
  send(message: Uint8Array): void {
    if (!this.#over) this.#socket.send(message);
  }

  /** Ends it from this side, without waiting for the other. */
  fail(error: EngineWireError): void {
    if (this.#over) return;
    this.#end(error);
    this.#socket.close(closeCodes.normal);
  }

  #end(error: EngineWireError): void {
    if (this.#over) return;
    this.#over = true;
    this.#ended(error);
  }
}

function asCredentialError(cause: unknown): EngineWireError {
  return new EngineWireError("unauthenticated", "the function that gets the credential failed", { cause });
}

function reasonOf(opened: boolean, code: number, reason: string): EngineWireError {
  if (!opened) return new EngineWireError("unreachable", "no relay answers at the address", { stage: "connect" });
  const text = `the relay closed the connection (${code}${reason === "" ? "" : `: ${reason}`})`;
  switch (code) {
    case closeCodes.goingAway:
      return new EngineWireError("going_away", text);
    case closeCodes.tooLong:
      return new EngineWireError("limit_exceeded", `${text}: a message was longer than it takes`, { path: "message_bytes" });
    case closeCodes.slow:
      return new EngineWireError("limit_exceeded", text, { path: "send_buffer_bytes" });
    case closeCodes.unauthenticated:
      return new EngineWireError("unauthenticated", text);
    case closeCodes.version:
      return new EngineWireError("version_mismatch", text);
    case closeCodes.flood:
      return new EngineWireError("limit_exceeded", text, { path: "calls_per_second" });
    case closeCodes.malformed:
    case closeCodes.text:
      return new EngineWireError("malformed", text);
    default:
      return new EngineWireError("unreachable", text);
  }
}
