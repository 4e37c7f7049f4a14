import {
  decodeCompleted,
  decodeGoingAway,
  decodeRefused,
  decodeReply,
  decodeWaiting,
  decodeWelcome,
} from "../../generated/relay/decoders.ts";
import { encodeCall, encodeCancel, encodeHello, encodePing } from "../../generated/relay/encoders.ts";
import type { RelayMessage, Reply, Welcome } from "../../generated/relay/types.ts";
import { AbortListeners } from "../transport/abort-listeners.ts";
import type { CloseReason } from "../transport/connection.ts";
import { Deadlines } from "../transport/deadlines.ts";
import { fromFailure } from "../transport/relay/failure.ts";
import { protocolVersion } from "../transport/relay/protocol.ts";
import { checkSignal, checkTimeout } from "../transport/timeouts.ts";
import { EngineWireError, type EngineWireErrorDetails, type ErrorCode } from "../wire/errors.ts";
import { Backoff } from "./backoff.ts";
import { explain } from "./explain.ts";
import type { LinkHandlers, LinkStatus, ResolvedConnectOptions } from "./link-options.ts";
import type { LinkCallOptions, Pending, RawReply } from "./pending.ts";
import { RelaySocket } from "./socket.ts";

/** How much longer than its deadline a call waits for the relay to say so: its error knows more. In milliseconds. */
const graceMs = 2000;
/** The relay would give the same answer again. */
const final: readonly ErrorCode[] = ["version_mismatch", "forbidden", "malformed"];

/**
 * A link to a relay that outlives its connections: calls that are new wait for the next one; a call that was sent over one
 * that is lost rejects with `outcome_unknown` and is never sent again.
 */
export class RelayLink {
  /** Resolves when the link has closed, with the reason. Never rejects. */
  readonly closed: Promise<CloseReason>;
  readonly #url: string;
  readonly #options: ResolvedConnectOptions;
  readonly #handlers: LinkHandlers;
  readonly #backoff: Backoff;
  readonly #calls = new Map<number, Pending>();
  readonly #deadlines = new Deadlines();
  readonly #aborts = new AbortListeners();
  readonly #sockets = new Set<RelaySocket>();
  #now: LinkStatus = { state: "connecting" };
  /** The connection that new calls go to. */
  #current: RelaySocket | undefined;
  /** The connection that was made last, until it is lost or takes no more calls. */
  #latest: RelaySocket | undefined;
  #welcome: Welcome | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #refusedTokens = 0;
  #lastId = 0;
  #nonce = 0;
  #resolveClosed!: (reason: CloseReason) => void;
  #first: { readonly resolve: () => void; readonly reject: (error: EngineWireError) => void } | undefined;

  constructor(url: string, options: ResolvedConnectOptions, handlers: LinkHandlers) {
    this.#url = url;
    this.#options = options;
    this.#handlers = handlers;
    this.#backoff = new Backoff(options.firstDelayMs, options.longestDelayMs);
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
  }

  /** What the relay said last when it let this client in. */
  get welcome(): Welcome | undefined {
    return this.#welcome;
  }

  /** Makes the first connection. Rejects, and closes the link, with why it could not be made. */
  async open(): Promise<void> {
    try {
      await this.#open();
    } catch (error) {
      throw await explain(this.#url, error as EngineWireError);
    }
  }

  #open(): Promise<void> {
    const { signal } = this.#options;
    return new Promise((resolve, reject) => {
      this.#first = { resolve, reject };
      const aborted = (): void => this.#fail(new EngineWireError("aborted", "the connection was given up", { cause: signal?.reason }));
      if (signal?.aborted) {
        aborted();
        return;
      }
      const ignore = signal && this.#aborts.add(signal, aborted);
      void this.closed.then(() => ignore?.());
      try {
        this.#connect();
      } catch (error) {
        this.#fail(error as EngineWireError);
      }
    });
  }

  /**
   * Sends an encoded request and resolves with the replies, in the order of their arrival. Rejects with an
   * `EngineWireError`: what the relay answers, `unreachable`, `timeout`, `aborted`, `outcome_unknown`, `closed`,
   * `invalid_argument`.
   */
  async call(request: Uint8Array, options: LinkCallOptions = {}): Promise<readonly RawReply[]> {
    const timeoutMs = checkTimeout(options.timeoutMs ?? 60_000);
    const { signal } = options;
    if (signal !== undefined) checkSignal(signal);
    if (this.#now.state === "closed") throw failure("closed", `the link is closed (${this.#now.reason.reason})`, "queue");
    if (signal?.aborted) throw failure("aborted", "the call was aborted before anything was sent", "queue", { cause: signal.reason });
    return new Promise((resolve, reject) => {
      const until = performance.now() + timeoutMs;
      const call: Pending = { id: this.newId(), request, options, timeoutMs, until, replies: [], resolve, reject };
      call.deadline = this.#deadlines.add(timeoutMs, () => this.#expire(call));
      call.ignoreAbort = signal && this.#aborts.add(signal, () => this.#abort(call));
      this.#calls.set(call.id, call);
      if (this.#current !== undefined) this.#send(call, this.#current);
    });
  }

  /** How the link is. */
  get status(): LinkStatus {
    return this.#now;
  }

  /** Fails what is pending with `closed` and closes. Closing twice is closing once. */
  close(reason = "close was called"): Promise<CloseReason> {
    this.#shut({ reason });
    return this.closed;
  }

  /**
   * The connection that new calls and streams go to; undefined while there is none.
   *
   * @internal
   */
  get current(): RelaySocket | undefined {
    return this.#current;
  }

  /**
   * An id for a call or a stream.
   *
   * @internal
   */
  newId(): number {
    do this.#lastId = (this.#lastId + 1) >>> 0;
    while (this.#calls.has(this.#lastId));
    return this.#lastId;
  }

  #connect(): void {
    this.#change({ state: "connecting" });
    const { token, client, timeoutMs } = this.#options;
    const hello = async (): Promise<Uint8Array> => encodeHello({ versions: [protocolVersion], token: (await token()) ?? null, client });
    let timer: ReturnType<typeof setTimeout> | undefined;
    let pulse: ReturnType<typeof setInterval> | undefined;
    const socket: RelaySocket = new RelaySocket(
      this.#options.WebSocket,
      this.#url,
      hello,
      (tag, message) => {
        if (tag !== "Welcome") {
          this.#receive(socket, tag, message);
          return;
        }
        clearTimeout(timer);
        const welcome = decodeWelcome(message);
        pulse = setInterval(() => this.#beat(socket, welcome.heartbeatMs), welcome.heartbeatMs);
        this.#welcomed(socket, welcome);
      },
      (error) => {
        clearTimeout(timer);
        clearInterval(pulse);
        this.#lost(socket, error);
      },
    );
    this.#sockets.add(socket);
    this.#latest = socket;
    timer = setTimeout(
      () => socket.fail(new EngineWireError("unreachable", `the relay did not welcome within ${timeoutMs} ms`)),
      timeoutMs,
    );
  }

  #welcomed(socket: RelaySocket, welcome: Welcome): void {
    this.#welcome = welcome;
    this.#current = socket;
    this.#refusedTokens = 0;
    this.#backoff.opened();
    this.#handlers.welcomed?.(welcome);
    this.#change({ state: "open", session: welcome.session });
    this.#first?.resolve();
    this.#first = undefined;
    for (const call of this.#calls.values()) if (call.socket === undefined) this.#send(call, socket);
  }

  #send(call: Pending, socket: RelaySocket): void {
    const { engines, release, guard } = call.options;
    try {
      const timeoutMs = Math.max(1, call.until - performance.now());
      const message = encodeCall({ id: call.id, request: call.request, engines, timeoutMs, guard, release });
      const most = this.#welcome?.limits.messageBytes ?? 0;
      if (message.length > most)
        throw failure("limit_exceeded", `the call has ${message.length} bytes, and the relay takes ${most}`, "queue", {
          path: "message_bytes",
        });
      call.socket = socket;
      socket.send(message);
    } catch (error) {
      this.#reject(call, error as EngineWireError);
    }
  }

  #receive(socket: RelaySocket, tag: RelayMessage["$tag"], bytes: Uint8Array): void {
    // the call that a message is about, unless it has settled, or belongs to another connection
    const find = (id: number | null): Pending | undefined => {
      const call = id === null ? undefined : this.#calls.get(id);
      return call?.socket === socket ? call : undefined;
    };
    switch (tag) {
      case "Reply": {
        const reply = decodeReply(bytes);
        const call = find(reply.id);
        if (call !== undefined) this.#reply(call, reply);
        return;
      }
      case "Completed": {
        const { id, failure } = decodeCompleted(bytes);
        const call = find(id);
        if (call === undefined) return;
        if (failure === null) this.#settle(call).resolve(call.replies);
        else this.#reject(call, fromFailure(failure, { replies: call.replies }));
        return;
      }
      case "Waiting": {
        const { id, holder } = decodeWaiting(bytes);
        find(id)?.options.onWait?.(holder);
        return;
      }
      case "Refused": {
        const { id, failure } = decodeRefused(bytes);
        const call = find(id);
        if (call !== undefined) this.#reject(call, fromFailure(failure));
        else this.#handlers.other?.(tag, bytes, socket);
        return;
      }
      case "GoingAway": {
        const { reason, reconnect } = decodeGoingAway(bytes);
        this.#leave(socket, reason, reconnect);
        return;
      }
      default:
        this.#handlers.other?.(tag, bytes, socket);
    }
  }

  #reply(call: Pending, { engine, reply, durationMs, completed }: Reply): void {
    const raw = { engine, reply, durationMs };
    try {
      call.options.onReply?.(raw);
      call.replies.push(raw);
      if (completed) this.#settle(call).resolve(call.replies);
    } catch (error) {
      this.#cancel(call);
      this.#reject(call, error as EngineWireError);
    }
  }

  /** The relay finishes what it has and takes no more here. */
  #leave(socket: RelaySocket, reason: string, atOnce: boolean): void {
    if (this.#current !== socket) return;
    this.#current = undefined;
    this.#latest = undefined;
    this.#again(new EngineWireError("going_away", reason), atOnce ? 0 : undefined);
  }

  #beat(socket: RelaySocket, everyMs: number): void {
    if (performance.now() - socket.heardAt > everyMs * 2.5) {
      socket.fail(new EngineWireError("unreachable", "nothing was heard of the relay for too long"));
      return;
    }
    this.#nonce = (this.#nonce + 1) >>> 0;
    socket.send(encodePing({ nonce: this.#nonce }));
  }

  #lost(socket: RelaySocket, error: EngineWireError): void {
    this.#sockets.delete(socket);
    this.#handlers.lost?.(socket, error);
    for (const call of this.#calls.values()) {
      if (call.socket !== socket) continue;
      const text = "the connection to the relay was lost after the call was sent: it may have taken effect; look before you send it again";
      this.#reject(call, failure("outcome_unknown", text, "reply", { cause: error, replies: call.replies }));
    }
    if (this.#now.state === "closed") return;
    // an old connection that has finished what it had
    if (this.#latest !== socket) return;
    this.#latest = undefined;
    this.#current = undefined;
    if (error.code === "unauthenticated" && (!this.#options.renews || ++this.#refusedTokens > 1)) this.#fail(error);
    else if (this.#first !== undefined || final.includes(error.code)) this.#fail(error);
    else this.#again(error);
  }

  /** Connects again after a delay. */
  #again(error: EngineWireError, delayMs = this.#backoff.next()): void {
    clearTimeout(this.#retry);
    this.#change({ state: "waiting", delayMs, error });
    this.#retry = setTimeout(() => this.#connect(), delayMs);
  }

  #expire(call: Pending): void {
    if (call.socket === undefined) {
      const why = this.#now.state === "waiting" ? this.#now.error : undefined;
      const code = why?.code === "going_away" ? "going_away" : "unreachable";
      const text = `the call was not sent within ${call.timeoutMs} ms: there is no connection to the relay`;
      this.#reject(call, failure(code, text, "queue", why === undefined ? {} : { cause: why }));
    } else if (performance.now() < call.until + graceMs) {
      call.deadline = this.#deadlines.add(graceMs, () => this.#expire(call));
    } else {
      this.#cancel(call);
      this.#reject(
        call,
        failure("timeout", `the relay did not say within ${call.timeoutMs} ms how the call ended`, "reply", { replies: call.replies }),
      );
    }
  }

  #abort(call: Pending): void {
    const cause: unknown = call.options.signal?.reason;
    const sent = call.socket !== undefined;
    this.#cancel(call);
    const text = sent
      ? "the call was aborted after it was sent: it may still take effect"
      : "the call was aborted before anything was sent";
    this.#reject(call, failure("aborted", text, sent ? "reply" : "queue", { cause, replies: call.replies }));
  }

  #cancel({ id, socket }: Pending): void {
    socket?.send(encodeCancel({ id }));
  }

  #settle(call: Pending): Pending {
    this.#calls.delete(call.id);
    if (call.deadline !== undefined) this.#deadlines.remove(call.deadline);
    call.ignoreAbort?.();
    return call;
  }

  #reject(call: Pending, error: EngineWireError): void {
    this.#settle(call).reject(error);
  }

  #change(status: LinkStatus): void {
    this.#now = status;
    this.#handlers.status?.(status);
  }

  #fail(error: EngineWireError): void {
    this.#shut({ reason: error.message, error });
  }

  #shut(reason: CloseReason): void {
    if (this.#now.state === "closed") return;
    this.#change({ state: "closed", reason });
    clearTimeout(this.#retry);
    const error = reason.error ?? new EngineWireError("closed", `the link was closed (${reason.reason})`);
    this.#first?.reject(error);
    for (const call of this.#calls.values()) {
      const what = call.socket === undefined ? "before anything was sent" : "after it was sent: it may still take effect";
      const details = { cause: reason.error, replies: call.replies };
      this.#reject(
        call,
        failure("closed", `the link closed (${reason.reason}) ${what}`, call.socket === undefined ? "queue" : "reply", details),
      );
    }
    for (const socket of this.#sockets) socket.fail(error);
    this.#deadlines.clear();
    this.#resolveClosed(reason);
  }
}

function failure(code: ErrorCode, message: string, stage: string, details: EngineWireErrorDetails = {}): EngineWireError {
  return new EngineWireError(code, message, { stage, ...details });
}
