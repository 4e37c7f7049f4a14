import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { WebSocket, WebSocketServer } from "ws";
import { createGuardedClient } from "../client/create-client.ts";
import { guardOf } from "../client/guard/call-guard.ts";
import { AbortListeners } from "../transport/abort-listeners.ts";
import type { Connection } from "../transport/connection.ts";
import { closeCodes, subprotocol } from "../transport/relay/protocol.ts";
import { checkTimeout } from "../transport/timeouts.ts";
import { EngineWireError } from "../wire/errors.ts";
import { AddressCount } from "./addresses.ts";
import type { AuditEntry, AuditSink } from "./audit.ts";
import type { RelayContext, RelayCounter } from "./context.ts";
import { answerHealth, type Health } from "./health.ts";
import { Lines } from "./lines.ts";
import { Metrics, noMetrics } from "./metrics.ts";
import { checkReach, type ResolvedServeOptions, resolveServeOptions, type ServeOptions } from "./options.ts";
import { loadPeer } from "./peer.ts";
import { Rates } from "./rate.ts";
import { Refusals } from "./refusals.ts";
import { packageRelease } from "./release.ts";
import { Session } from "./session.ts";
import { answerRefusal, type Refusal, refuseUpgrade, tokenOf } from "./upgrade.ts";
import { Watch } from "./watch.ts";

/** Connections that may be open besides those of clients: for health, metrics and whoever is about to become one. */
const idleConnections = 256;

/** A relay that serves. */
export interface Relay extends AsyncDisposable {
  /** Its address, such as `ws://127.0.0.1:30600/`; empty while a server of yours does not listen. */
  readonly url: string;
  /** How many clients are connected. */
  readonly clients: number;
  /** Resolves when the relay has closed, which it also does when its connection closes. Never rejects. */
  readonly closed: Promise<void>;
  /**
   * Answers `/healthz`, `/readyz` and `/metrics`, for a server of yours; false where the request is for something else. A
   * server of the relay's own does so by itself.
   */
  answer(request: IncomingMessage, response: ServerResponse): boolean;
  /**
   * Takes no more clients and calls, tells all, waits for calls under way up to `drainMs` (default: the limit of that name)
   * and closes. The connection stays open: it is yours.
   */
  close(reason?: string, options?: { readonly drainMs?: number }): Promise<void>;
}

/**
 * Serves a connection over WebSocket to many clients. Throws `invalid_argument`, `address_unavailable`, and
 * `transport_unavailable` where `ws` is not installed.
 */
export async function serve(connection: Connection, options: ServeOptions = {}): Promise<Relay> {
  const resolved = resolveServeOptions(options);
  const { WebSocketServer } = await loadPeer("ws", () => import("ws"));
  const metrics = resolved.metrics ? await Metrics.load() : noMetrics;
  const wss = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    // the session answers pings, and counts them
    autoPong: false,
    maxPayload: resolved.limits.messageBytes,
    // each costs an object: a message in the smallest pieces would cost a hundred times its length
    maxFragments: 1024,
    maxBufferedChunks: Math.max(4096, Math.ceil(resolved.limits.messageBytes / 256)),
    handleProtocols: () => subprotocol,
  });
  const relay = new RelayServer(connection, resolved, wss, metrics);
  await relay.listen();
  return relay;
}

class RelayServer implements Relay {
  readonly closed: Promise<void>;
  readonly #options: ResolvedServeOptions;
  readonly #connection: Connection;
  readonly #wss: WebSocketServer;
  readonly #metrics: RelayCounter;
  readonly #server: Server;
  readonly #own: boolean;
  readonly #sessions = new Set<Session>();
  readonly #addresses: AddressCount;
  readonly #watch: Watch;
  readonly #context: RelayContext;
  readonly #upgrade = (request: IncomingMessage, stream: Duplex, head: Buffer): void => this.#onUpgrade(request, stream, head);
  #pulse: ReturnType<typeof setInterval> | undefined;
  #auditWorks = true;
  #stopping: Promise<void> | undefined;
  #resolveClosed!: () => void;
  #whenEmpty = (): void => {};

  constructor(connection: Connection, options: ResolvedServeOptions, wss: WebSocketServer, metrics: RelayCounter) {
    const { limits, tls, authenticate, audit, log } = options;
    this.#connection = connection;
    this.#options = options;
    this.#wss = wss;
    this.#metrics = metrics;
    this.#own = options.server === undefined;
    const handshakeTimeout = limits.handshakeMs;
    const times = { headersTimeout: limits.handshakeMs, requestTimeout: limits.handshakeMs, connectionsCheckingInterval: 1000 };
    this.#server = options.server ?? (tls === undefined ? createServer(times) : createTlsServer({ ...times, handshakeTimeout, ...tls }));
    if (this.#own) {
      // for requests that are no WebSocket: whoever does not read their answers
      this.#server.timeout = limits.handshakeMs * 2;
      // those that have asked for nothing yet, from however many addresses
      this.#server.maxConnections = limits.connections + idleConnections;
    }
    this.#addresses = new AddressCount(limits.connectionsPerAddress);
    const guard = guardOf(connection);
    const failed = (error: unknown): void => log({ level: "error", message: "what an engine said could not be told to clients", error });
    this.#watch = new Watch(connection, guard, this.#sessions, failed);
    this.#context = {
      client: createGuardedClient(connection, guard),
      engines: connection.engines.length,
      limits,
      lines: new Lines(),
      refusals: new Refusals(),
      withdrawals: new AbortListeners(),
      release: packageRelease(),
      authenticate: authenticate && (async (credential) => authenticate(credential)),
      rates: new Rates(limits.callsPerSecond),
      counter: metrics,
      log,
      audited: () => this.#auditWorks,
      audit: audit && ((entry) => this.#writeDown(audit, entry)),
      stirred: () => this.#watch.stirred(),
      tellChanges: () => this.#watch.tellChanges(),
    };
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
  }

  get url(): string {
    const address = this.#server.address() as AddressInfo | null;
    if (address === null) return "";
    const host = address.family === "IPv6" ? `[${address.address}]` : address.address;
    // a server of somebody else's says what it speaks only by its class
    const secure = this.#options.tls !== undefined || "setSecureContext" in this.#server;
    return `${secure ? "wss" : "ws"}://${host}:${address.port}${this.#options.path}`;
  }

  get clients(): number {
    return this.#sessions.size;
  }

  async listen(): Promise<void> {
    const { host, port, limits } = this.#options;
    this.#server.on("upgrade", this.#upgrade);
    if (this.#own) {
      this.#server.on("connection", (socket: Socket) => this.#onConnection(socket));
      this.#server.on("request", (request: IncomingMessage, response: ServerResponse) => {
        if (!this.answer(request, response))
          response.writeHead(request.url === this.#options.path ? 426 : 404, { Upgrade: "websocket" }).end();
      });
      await new Promise<void>((resolve, reject) => {
        const failed = (cause: Error): void =>
          reject(new EngineWireError("address_unavailable", `the relay cannot listen on ${host}:${port}: ${cause.message}`, { cause }));
        this.#server.once("error", failed);
        this.#server.listen(port, host, () => {
          this.#server.off("error", failed);
          this.#server.on("error", (error) => this.#options.log({ level: "error", message: "the relay's server failed", error }));
          resolve();
        });
      });
    }
    const address = this.#server.address() as AddressInfo | null;
    checkReach(this.#options, address?.address);
    this.#pulse = setInterval(() => this.#beat(), Math.max(10, Math.floor(limits.idleMs / 4)));
    this.#pulse.unref();
    this.#watch.stirred();
    void this.#watch.run();
    void this.#connection.closed.then(({ reason }) => this.close(`the engines' connection closed: ${reason}`, { drainMs: 1 }));
  }

  answer(request: IncomingMessage, response: ServerResponse): boolean {
    return answerHealth(request, response, this.#health(), this.#options, this.#metrics);
  }

  close(reason = "the relay is stopping", { drainMs = this.#options.limits.drainMs }: { readonly drainMs?: number } = {}): Promise<void> {
    checkTimeout(drainMs);
    this.#stopping ??= this.#shutDown(reason, drainMs);
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #health(): Health {
    const engines = this.#connection.engines;
    const up = engines.filter(({ state }) => state === "up").length;
    return { stopping: this.#stopping !== undefined, enginesUp: up, engines: engines.length, audited: this.#auditWorks };
  }

  /** Connections that never become WebSockets count as well: opening them costs an attacker nothing. */
  #onConnection(socket: Socket): void {
    const leave = this.#addresses.enter(socket.remoteAddress ?? "");
    if (leave === undefined) socket.destroy();
    else socket.once("close", leave);
  }

  #onUpgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    const { path, limits } = this.#options;
    const foreign = (request.url ?? "").split("?")[0] !== path;
    // another listener of somebody else's server may want it
    if (foreign && !this.#own) return;
    stream.on("error", () => stream.destroy());
    const refusal = this.#refusalOf(request, foreign);
    if (refusal !== undefined) {
      this.#metrics.client("refused");
      answerRefusal(stream, refusal);
      return;
    }
    const address = request.socket.remoteAddress ?? "";
    if (!this.#own) {
      const leave = this.#addresses.enter(address);
      if (leave === undefined) {
        this.#metrics.client("refused");
        answerRefusal(stream, { status: 429, reason: `${limits.connectionsPerAddress} clients are connected from this address` });
        return;
      }
      stream.once("close", leave);
    }
    this.#wss.handleUpgrade(request, stream, head, (socket) => this.#open(socket, stream, request, address));
  }

  #refusalOf(request: IncomingMessage, foreign: boolean): Refusal | undefined {
    const { path, limits } = this.#options;
    if (foreign) return { status: 404, reason: `the WebSocket is at ${path}` };
    if (this.#stopping !== undefined) return { status: 503, reason: "the relay is stopping" };
    if (this.#sessions.size >= limits.connections) return { status: 503, reason: `${limits.connections} clients are connected` };
    return refuseUpgrade(request, this.#options);
  }

  #open(socket: WebSocket, stream: Duplex, request: IncomingMessage, address: string): void {
    const arrival = { name: randomBytes(6).toString("hex"), address, origin: request.headers.origin, token: tokenOf(request) };
    const ended = (): void => {
      this.#sessions.delete(session);
      if (this.#sessions.size === 0) this.#whenEmpty();
    };
    const session: Session = new Session(this.#context, { views: () => this.#watch.views(), ended }, socket, stream, arrival);
    this.#sessions.add(session);
  }

  /** Looks for clients that have fallen silent. */
  #beat(): void {
    const now = performance.now();
    const { idleMs } = this.#options.limits;
    this.#context.rates.forget(now);
    for (const session of this.#sessions) {
      if (now - session.heardAt > idleMs) session.expire();
      else session.ping();
    }
  }

  /** Resolves when no session is left, or after so many milliseconds. */
  #emptied(timeoutMs?: number): Promise<void> {
    if (this.#sessions.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = timeoutMs === undefined ? undefined : setTimeout(resolve, timeoutMs);
      this.#whenEmpty = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #writeDown(audit: AuditSink, entry: AuditEntry): void {
    try {
      audit.write(entry);
      this.#auditWorks = true;
    } catch (error) {
      this.#auditWorks = false;
      this.#options.log({ level: "error", message: "the audit log cannot be written; state-changing calls are refused", error });
    }
  }

  async #shutDown(reason: string, drainMs: number): Promise<void> {
    this.#server.off("upgrade", this.#upgrade);
    if (this.#own) this.#server.close();
    for (const session of this.#sessions) session.leave(reason, false);
    await this.#emptied(drainMs);
    for (const session of this.#sessions) session.close(closeCodes.goingAway, reason);
    // sessions end within a second of being closed, whatever their clients do
    await this.#emptied();
    clearInterval(this.#pulse);
    if (this.#own) this.#server.closeAllConnections();
    this.#resolveClosed();
  }
}
