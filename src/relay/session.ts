import type { Duplex } from "node:stream";
import type { RawData, WebSocket } from "ws";
import { decodeClientMessage } from "../../generated/relay/decoders.ts";
import {
  encodeCompleted,
  encodeEnginesChanged,
  encodeEngineView,
  encodeEvent,
  encodeGoingAway,
  encodePong,
  encodeRefused,
  encodeStreamEnd,
  encodeWelcome,
} from "../../generated/relay/encoders.ts";
import type { Call, ClientMessage, EngineViewInit, EventInit, Hello, StreamOpen } from "../../generated/relay/types.ts";
import { toFailure } from "../transport/relay/failure.ts";
import { closeCodes, protocolVersion } from "../transport/relay/protocol.ts";
import { EngineWireError } from "../wire/errors.ts";
import { type Caller, carryOut } from "./call.ts";
import { CallHandle } from "./call-handle.ts";
import type { RelayContext } from "./context.ts";
import { limitFirstBytes } from "./first-bytes.ts";
import { identify } from "./identify.ts";
import type { Identity } from "./identity.ts";
import { Outbox } from "./outbox.ts";
import { Rate } from "./rate.ts";
import { SessionStreams } from "./streams.ts";

/** What is known of a client before it has said anything. */
export interface Arrival {
  /** The session's name. */
  readonly name: string;
  readonly address: string;
  readonly origin: string | undefined;
  /** The credential of the list of subprotocols. */
  readonly token: string | undefined;
}

/** What a session tells the relay that it belongs to. */
export interface SessionEvents {
  /** The engines that a client is welcomed with. */
  readonly views: () => readonly EngineViewInit[];
  /** It has ended. */
  readonly ended: () => void;
}

/** Longest first message, in bytes: a credential and a name. */
const longestHello = 16_384;
const longestName = 120;
/** How long a client may take to answer a close, in milliseconds. */
const closeMs = 1000;
/** Longest delay of a timer; a credential that lasts longer is looked at again then. */
const longestTimer = 2_147_483_647;

/** One client's connection, from its upgrade until it is closed. */
export class Session {
  readonly arrival: Arrival;
  /** When the client was heard last, in milliseconds of `performance.now()`. */
  heardAt = performance.now();
  readonly #context: RelayContext;
  readonly #events: SessionEvents;
  readonly #socket: WebSocket;
  readonly #outbox: Outbox;
  readonly #calls = new Map<number, CallHandle>();
  #streams: SessionStreams | undefined;
  readonly #messageRate: Rate;
  #stage: "hello" | "checking" | "open" | "leaving" | "closed" = "hello";
  #caller: Caller | undefined;
  /** Whose calls count together. */
  #rateKey = "";
  #dropped = 0;
  #deadline: ReturnType<typeof setTimeout> | undefined;
  #stopListening = (): void => {};
  #stopCounting: () => void;

  constructor(context: RelayContext, events: SessionEvents, socket: WebSocket, stream: Duplex, arrival: Arrival) {
    const { limits } = context;
    this.arrival = arrival;
    this.#context = context;
    this.#events = events;
    this.#socket = socket;
    this.#outbox = new Outbox(socket, stream, limits.sendBufferBytes, () => this.#end(closeCodes.slow, "the client reads too slowly"));
    this.#messageRate = new Rate(limits.callsPerSecond * 4, performance.now());
    this.#deadline = setTimeout(() => this.#end(closeCodes.silent, "no credential was accepted in time"), limits.handshakeMs);
    const tooLong = new EngineWireError("malformed", `a first message has at most ${longestHello} bytes`);
    this.#stopCounting = limitFirstBytes(stream, longestHello * 2, () => {
      this.#refuse(closeCodes.malformed, tooLong);
      // who hears of it has time to stop
      limitFirstBytes(stream, longestHello * 16, () => socket.terminate());
    });
    socket.on("message", (data, isBinary) => this.#receive(data, isBinary));
    socket.on("ping", (data: Buffer) => this.#mayReceive() && this.#outbox.pong(data));
    socket.on("pong", () => this.#mayReceive());
    // ws begins to close by itself after an error; without a listener the process would end
    socket.on("error", () => setTimeout(() => socket.terminate(), closeMs).unref());
    socket.on("close", () => this.#closed());
  }

  /** Calls and streams under way. */
  get pending(): number {
    return this.#calls.size + (this.#streams?.size ?? 0);
  }

  /** Whom its credential names, once it was accepted. */
  get identity(): Identity | undefined {
    return this.#caller?.identity;
  }

  /** Asks the client for a sign of life. */
  ping(): void {
    this.#socket.ping();
  }

  /** Closes for silence. */
  expire(): void {
    this.#end(closeCodes.silent, "nothing was heard for too long");
  }

  /** Tells about engines, those that the credential allows. */
  tellEngines(views: readonly EngineViewInit[]): void {
    const allowed = this.#allowed(views, ({ index }) => index);
    if (this.#isOpen && allowed.length > 0) this.#outbox.send(encodeEnginesChanged({ engines: allowed }));
  }

  /** Tells an event to a client that may read, unless too much waits for it already: then it is told how many it missed. */
  tellEvent(event: EventInit, message: Uint8Array): void {
    if (!this.#isOpen || !this.identity?.scopes.includes("read")) return;
    if (event.engine !== undefined && this.#allowed([event.engine], (engine) => engine ?? -1).length === 0) return;
    if (this.#outbox.waiting > this.#context.limits.sendBufferBytes / 8) {
      this.#dropped++;
      return;
    }
    if (this.#dropped > 0) this.#outbox.send(encodeEvent({ type: "events_dropped", count: this.#dropped }));
    this.#dropped = 0;
    this.#outbox.send(message);
  }

  /** Takes no more calls and closes when those under way have ended. */
  leave(reason: string, reconnect: boolean): void {
    if (this.#stage === "hello" || this.#stage === "checking") this.#end(closeCodes.goingAway, reason);
    if (this.#stage !== "open") return;
    this.#stage = "leaving";
    this.#outbox.send(encodeGoingAway({ reason, reconnect }));
    this.#leaveWhenDone();
  }

  /** Closes at once; calls under way go on and are audited. */
  close(code: number, reason: string): void {
    this.#end(code, reason);
  }

  get #isOpen(): boolean {
    return this.#stage === "open" || this.#stage === "leaving";
  }

  #allowed<Item>(items: readonly Item[], indexOf: (item: Item) => number): readonly Item[] {
    const engines = this.identity?.engines;
    return engines === undefined ? items : items.filter((item) => engines.includes(indexOf(item)));
  }

  /** Notes that the client was heard; false where it said too much. */
  #mayReceive(): boolean {
    if (this.#stage === "closed") return false;
    this.heardAt = performance.now();
    if (this.#messageRate.take(this.heardAt)) return true;
    this.#refuse(closeCodes.flood, new EngineWireError("limit_exceeded", "too many messages", { path: "calls_per_second" }));
    return false;
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (!this.#mayReceive()) return;
    if (!isBinary) {
      this.#end(closeCodes.text, "only binary messages are spoken here");
      return;
    }
    let message: ClientMessage;
    try {
      // ws gives one Buffer as long as its binaryType is left alone
      message = this.#decode(data as Buffer);
    } catch (error) {
      this.#refuse(closeCodes.malformed, error);
      return;
    }
    this.#handle(message);
  }

  #decode(bytes: Uint8Array): ClientMessage {
    if (!this.#isOpen && bytes.length > longestHello)
      throw new EngineWireError("malformed", `a first message has at most ${longestHello} bytes`);
    const message = decodeClientMessage(bytes);
    const { $tag: found } = message;
    // one Hello, and nothing else before its answer
    if (this.#stage === "checking" || (found === "Hello") === this.#isOpen)
      throw new EngineWireError("malformed", `a ${found} is not legal here`, { found });
    return message;
  }

  #handle(message: ClientMessage): void {
    switch (message.$tag) {
      case "Hello":
        this.#welcome(message).catch((error: unknown) => {
          this.#context.log({ level: "error", message: `session ${this.arrival.name} could not be welcomed`, error });
          this.#refuse(closeCodes.malformed, error);
        });
        return;
      case "Call":
        this.#call(message);
        return;
      case "Cancel":
        if (this.#streams?.cancel(message.id)) return;
        this.#calls.get(message.id)?.abort(new EngineWireError("aborted", "the client gave the call up"));
        return;
      case "Ping":
        this.#outbox.send(encodePong({ nonce: message.nonce }));
        return;
      case "StreamOpen":
        this.#stream(message);
        return;
      case "StreamCredit":
        this.#streams?.credit(message);
        return;
    }
  }

  async #welcome(hello: Hello): Promise<void> {
    const { limits, release, counter } = this.#context;
    if (!hello.versions.includes(protocolVersion)) {
      const found = hello.versions.slice(0, 8).join(", ");
      const text = `the client speaks ${found || "no version"}, and this relay (release ${release}) speaks ${protocolVersion}`;
      return this.#refuse(closeCodes.version, new EngineWireError("version_mismatch", text, { expected: String(protocolVersion), found }));
    }
    this.#stage = "checking";
    const client = hello.client.slice(0, longestName);
    const identity = await identify(this.#context, this.arrival, hello.token ?? this.arrival.token, client);
    // the deadline may have passed meanwhile
    if (this.#stage !== "checking") return;
    if (identity === undefined) {
      const text = "the relay refused the credential: give a valid `token`, or a function that gets one";
      return this.#refuse(closeCodes.unauthenticated, new EngineWireError("unauthenticated", text));
    }
    clearTimeout(this.#deadline);
    this.#stopCounting();
    // before it is open: what has changed since the others were told is no news to it
    const views = this.#events.views();
    this.#stage = "open";
    counter.client("in");
    const { name: session, address, origin } = this.arrival;
    const label = `${identity.name} (session ${session})`;
    this.#caller = { session, identity, label, client, address, origin, send: (message) => this.#outbox.send(message) };
    this.#rateKey = `${identity.name} ${address}`;
    this.#watch(identity);
    this.#streams = new SessionStreams(this.#context, this.#caller, this.#outbox, () => this.#ended());
    const { messageBytes, callsInFlight, callsPerSecond, listLength, idleMs, streams } = limits;
    this.#outbox.send(
      encodeWelcome({
        version: protocolVersion,
        relay: release,
        session,
        identity: identity.name,
        scopes: identity.scopes.join(" "),
        engines: this.#allowed(views, ({ index }) => index).map((view) => encodeEngineView(view)),
        limits: { messageBytes, callsInFlight, callsPerSecond, listLength, idleMs, streams },
        heartbeatMs: Math.max(1, Math.floor(idleMs / 4)),
        expiresInMs: identity.expiresAt === undefined ? null : Math.max(0, identity.expiresAt - Date.now()),
      }),
    );
  }

  /** Ends the session with its credential. */
  #watch({ expiresAt, withdrawn }: Identity): void {
    const wait = (): void => {
      const left = (expiresAt ?? 0) - Date.now();
      if (left <= 0) this.leave("the credential has expired", true);
      else this.#deadline = setTimeout(wait, Math.min(left, longestTimer));
    };
    if (expiresAt !== undefined) wait();
    if (withdrawn === undefined) return;
    const end = (): void =>
      this.#refuse(closeCodes.unauthenticated, new EngineWireError("unauthenticated", "the credential was withdrawn"));
    this.#stopListening = this.#context.withdrawals.add(withdrawn, end);
  }

  #call(message: Call): void {
    const { id } = message;
    const caller = this.#caller;
    if (caller === undefined) return;
    if (this.#isTaken(id)) return;
    const { callsInFlight } = this.#context.limits;
    const failure = this.#refusal("calls_in_flight", "calls are under way", this.#calls.size, callsInFlight);
    if (failure !== undefined) {
      this.#outbox.send(encodeCompleted({ id, failure: toFailure(failure) }));
      return;
    }
    const handle = new CallHandle();
    this.#calls.set(id, handle);
    void carryOut(this.#context, caller, message, handle).then(() => {
      this.#calls.delete(id);
      // no other reply is to leave with this one, which need not wait for the system call that asks an engine for more
      if (this.#calls.size === 0) this.#outbox.flush();
      this.#ended();
    });
  }

  #stream(message: StreamOpen): void {
    const streams = this.#streams;
    if (streams === undefined || this.#isTaken(message.id)) return;
    const failure = this.#refusal("streams", "streams are open", streams.size, this.#context.limits.streams);
    if (failure === undefined) streams.open(message);
    else this.#outbox.send(encodeStreamEnd({ id: message.id, failure: toFailure(failure) }));
  }

  /** Refuses an id that is in use, which goes on. */
  #isTaken(id: number): boolean {
    if (!this.#calls.has(id) && !this.#streams?.has(id)) return false;
    const failure = toFailure(
      new EngineWireError("invalid_argument", `the id ${id} is that of a call or stream under way`, { path: "id" }),
    );
    this.#outbox.send(encodeRefused({ id, failure }));
    return true;
  }

  #refusal(limit: string, what: string, under: number, most: number): EngineWireError | undefined {
    const { callsPerSecond } = this.#context.limits;
    if (this.#stage === "leaving")
      return new EngineWireError("going_away", "this connection takes no more calls; nothing was sent", { stage: "queue" });
    if (under >= most) return tooMany(limit, `${most} ${what}`, most);
    if (!this.#context.rates.take(this.#rateKey, this.heardAt))
      return tooMany("calls_per_second", `more than ${callsPerSecond} calls in a second`, callsPerSecond);
    return undefined;
  }

  #ended(): void {
    if (this.#stage === "leaving") this.#leaveWhenDone();
  }

  #leaveWhenDone(): void {
    if (this.pending === 0) this.#end(closeCodes.goingAway, "the calls under way have ended");
  }

  /** Says what is wrong and closes. */
  #refuse(code: number, error: unknown): void {
    this.#outbox.send(encodeRefused({ id: null, failure: toFailure(error) }));
    this.#end(code, toFailure(error).code);
  }

  #end(code: number, reason: string): void {
    if (this.#stage === "closed") return;
    this.#release();
    this.#socket.close(code, reason.slice(0, 120));
    // one that does not answer must not keep the connection
    setTimeout(() => this.#socket.terminate(), closeMs).unref();
  }

  #closed(): void {
    this.#release();
    const gone = new EngineWireError("aborted", "the client has left");
    for (const call of this.#calls.values()) if (!call.outlives) call.abort(gone);
    this.#events.ended();
  }

  #release(): void {
    if (this.#isOpen) this.#context.counter.client("out");
    this.#stage = "closed";
    clearTimeout(this.#deadline);
    this.#stopListening();
    this.#stopCounting();
    this.#outbox.close();
    this.#streams?.close();
  }
}

function tooMany(limit: string, what: string, most: number): EngineWireError {
  return new EngineWireError("limit_exceeded", `${what}, as many as this relay takes from one client; nothing was sent`, {
    path: limit,
    expected: `at most ${most}`,
    stage: "queue",
  });
}
