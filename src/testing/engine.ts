import { encodeControlOutput, encodeEngineCoreReadyResponse } from "../../generated/tokenspeed/encoders.ts";
import type { EngineCoreReadyResponseInit } from "../../generated/tokenspeed/types.ts";
import { loadZeroMQ, type ZeroMQ } from "../node/zeromq.ts";
import { readEngineMessage } from "./engine-message.ts";
import type { EngineEnd, EngineEvent } from "./events.ts";
import { type Effect, Group } from "./group.ts";
import { type HandshakeFault, shakeHands } from "./handshake.ts";
import { Link } from "./link.ts";
import type { EngineMessage } from "./messages.ts";
import { operationOf } from "./operation-names.ts";
import { registrationOf, type Settings, type SimulatedEngineOptions, settingsOf } from "./options.ts";
import { encodeOutputBatch } from "./output-batch.ts";
import type { Rules } from "./rules.ts";
import { type Answered, announceSlim, encodeSlimRefusal, encodeSlimReply } from "./slim-reply.ts";
import { EngineCrash } from "./stops.ts";

/** What can be seen of a rank's weights. */
export interface WeightsState {
  /** Changes with each load, and is equal on ranks that loaded the same things in the same order. */
  readonly checksum: string;
  /** The label of the last update that succeeded on every rank; null before the first that named one. */
  readonly version: string | null;
  /** How many loads this rank's device applied, those included that failed on another rank. */
  readonly updates: number;
  /** The label at each number of updates from 0 on: `versions[weightsOfToken(token)]` is that of the weights a token came from. */
  readonly versions: readonly (string | null)[];
}

/** What can be seen of one rank from outside, which no frontend could see. */
export interface RankState {
  /** Its index on the wire. */
  readonly index: number;
  /** Paused in any way, a drain included. */
  readonly paused: boolean;
  /** Nothing is scheduled at all. */
  readonly frozen: boolean;
  /** What waits for an empty scheduler. */
  readonly draining: "pause" | "release" | undefined;
  /** Released memory regions in release order. */
  readonly released: readonly string[];
  /** Gated operations that wait for the other ranks, by name. */
  readonly queued: readonly string[];
  /** Name of the weight update group it is in. */
  readonly group: string | undefined;
  /** Whether the profiler runs. */
  readonly profiling: boolean;
  /** Requests admitted and not ended, and those of them not yet in a batch. */
  readonly running: number;
  readonly waiting: number;
  /** The weights as they are now. */
  readonly weights: WeightsState;
  /** Control operations received and replies sent, by name. */
  readonly received: ReadonlyMap<string, number>;
  readonly replied: ReadonlyMap<string, number>;
}

/** A running group of simulated engines. */
export interface SimulatedEngine extends AsyncDisposable {
  /** Their indices on the wire, by rank. */
  readonly indices: readonly number[];
  /** How they ended, once they did. Never rejects. */
  readonly closed: Promise<{ readonly reason: EngineEnd; readonly error?: Error }>;
  /** What a rank is doing. Throws a RangeError for a rank there is not. */
  state(rank?: number): RankState;
  /** Lets further things go wrong from now on. Throws `invalid_argument` for a rule that could never apply. */
  addRules(rules: Rules): void;
  /** Sends a frame on a rank's output as it is, behind what is queued there. */
  sendRaw(rank: number, frame: Uint8Array): void;
  /** Ends in order: every rank says ENGINE_CORE_DEAD and closes its sockets. */
  close(): Promise<void>;
  /** Vanishes as a killed process: the sockets close without a word. */
  kill(): Promise<void>;
}

/**
 * Starts a group of simulated engines that dial a frontend over ZeroMQ, as TokenSpeed 0.1.0 does, and resolves when
 * every rank is registered and its output is connected (with a `handshakeFault`, when that fault is out). Throws
 * `invalid_argument`, `transport_unavailable`, `handshake_failed`, `handshake_timeout`, or the reason of an aborted `signal`.
 */
export async function startEngine(options: SimulatedEngineOptions): Promise<SimulatedEngine> {
  const engine = new Engine(settingsOf(options), options);
  try {
    await engine.start(await loadZeroMQ());
  } catch (error) {
    await engine.kill();
    throw error;
  }
  return engine;
}

class Engine implements SimulatedEngine {
  readonly indices: readonly number[];
  readonly closed: Promise<{ readonly reason: EngineEnd; readonly error?: Error }>;
  readonly #settings: Settings;
  readonly #options: SimulatedEngineOptions;
  readonly #group: Group;
  readonly #links: (Link | undefined)[] = [];
  readonly #inboxes: EngineMessage[][];
  readonly #received: Map<string, number>[];
  readonly #replied: Map<string, number>[];
  readonly #late = new Set<NodeJS.Timeout>();
  readonly #stop = new AbortController();
  #settle: (end: { reason: EngineEnd; error?: Error }) => void = () => {};
  #wake: (() => void) | undefined;
  #ending: Promise<void> | undefined;

  constructor(settings: Settings, options: SimulatedEngineOptions) {
    this.#settings = settings;
    this.#options = options;
    this.indices = Array.from({ length: settings.ranks }, (_, rank) => settings.index + rank);
    this.#inboxes = this.indices.map(() => []);
    this.#received = this.indices.map(() => new Map());
    this.#replied = this.indices.map(() => new Map());
    this.closed = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#group = new Group(
      settings,
      () => performance.now(),
      (rank, event, fields) => this.#tell({ event, rank, ...fields } as EngineEvent),
    );
  }

  async start(zeromq: ZeroMQ): Promise<void> {
    const { signal } = this.#options;
    const abort = () => this.#stop.abort(signal?.reason);
    signal?.throwIfAborted();
    signal?.addEventListener("abort", abort);
    try {
      const connections = this.indices.map((_, rank) => this.#connect(zeromq, rank));
      const up = Promise.all(connections.map(({ up }) => up)).then((ups) => {
        if (!ups.every(Boolean)) return;
        this.#tell({ event: "all_ready", ranks: this.indices.length });
        void this.#run();
      });
      // no frontend may ever answer a faulty opening, so the wait ends when that is out, whatever becomes of it
      up.catch(() => {});
      await (this.#options.handshakeFault === undefined ? up : Promise.all(connections.map(({ opened }) => opened)));
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  state(rank = 0): RankState {
    const found = this.#group.ranks[rank];
    if (found === undefined) throw new RangeError(`there is no rank ${rank}`);
    const { controls, device, scheduler } = found;
    const { checksum, version, updates, versions } = device.weights;
    return {
      index: this.#settings.index + rank,
      paused: controls.paused,
      frozen: controls.frozen,
      draining: controls.drain?.kind,
      released: controls.memory.released,
      queued: controls.queue.map(({ request }) => operationOf(request.$tag)),
      group: device.group,
      profiling: device.profiling,
      running: found.numRunning,
      waiting: scheduler.numWaiting,
      weights: { checksum, version, updates, versions },
      received: new Map(this.#received[rank]),
      replied: new Map(this.#replied[rank]),
    };
  }

  addRules(rules: Rules): void {
    for (const { device } of this.#group.ranks) device.rules.add(rules);
  }

  sendRaw(rank: number, frame: Uint8Array): void {
    if (this.#group.ranks[rank] === undefined) throw new RangeError(`there is no rank ${rank}`);
    this.#links[rank]?.send(frame);
  }

  close(): Promise<void> {
    return this.#finish({ reason: "asked" });
  }

  kill(): Promise<void> {
    return this.#finish({ reason: "killed" });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #tell(event: EngineEvent): void {
    this.#options.onEvent?.(event);
  }

  /** Connects a rank. `up` is false when a fault of the handshake ended it; `opened` is when a faulty opening is out. */
  #connect(zeromq: ZeroMQ, rank: number): { readonly up: Promise<boolean>; readonly opened: Promise<unknown> } {
    const given = this.#options.handshakeFault;
    const fault = given !== undefined && (given.rank ?? rank) === rank ? given.kind : undefined;
    let opened = () => {};
    const opening = new Promise<void>((resolve) => {
      opened = resolve;
    });
    const up = this.#join(zeromq, rank, fault, opened);
    return { up, opened: fault === undefined ? up : Promise.race([opening, up]) };
  }

  async #join(zeromq: ZeroMQ, rank: number, fault: HandshakeFault["kind"] | undefined, opened: () => void): Promise<boolean> {
    const { handshake, initTimeoutMs } = this.#settings;
    const { signal } = this.#stop;
    const index = this.#settings.index + rank;
    this.#tell({ event: "connecting", rank, index, handshake });
    const addresses = await shakeHands(zeromq, { address: handshake, index, initTimeoutMs, fault, opened, signal });
    if (addresses === undefined) return false;
    try {
      if (fault === "no-registration") return false;
      const given = this.#options.registration;
      const registration = given instanceof Uint8Array ? given : { ...registrationOf(this.#settings, rank), ...given };
      const payload = registration instanceof Uint8Array ? registration : this.#encodeRegistration(registration);
      const events = { received: (frames: Uint8Array[]) => this.#receive(rank, frames), lost: () => this.#lost(rank) };
      this.#links[rank] = await Link.connect(zeromq, index, addresses, payload, events, signal);
      this.#tell({ event: "ready", rank, index, registration });
      return true;
    } finally {
      addresses.release();
    }
  }

  #encodeRegistration(registration: EngineCoreReadyResponseInit): Uint8Array {
    const encoded = encodeEngineCoreReadyResponse(registration);
    return this.#settings.dialect === "slim" ? announceSlim(encoded) : encoded;
  }

  #receive(rank: number, frames: Uint8Array[]): void {
    let message: EngineMessage;
    try {
      const { dialect, control } = this.#settings;
      message = readEngineMessage(frames, this.#settings, dialect);
      if ((message.kind === "control" || message.kind === "refused_call") && !control)
        throw new TypeError("this engine has no control operations");
    } catch (error) {
      this.#tell({ event: "dropped", rank, frames: frames.length, reason: (error as Error).message });
      return;
    }
    if (message.kind === "control") count(this.#received[rank], operationOf(message.request.$tag));
    this.#tell({ event: "received", rank, message });
    this.#inboxes[rank]?.push(message);
    this.#wake?.();
  }

  #lost(rank: number): void {
    this.#tell({ event: "frontend_lost", rank });
    if (this.#settings.stopsWithFrontend) void this.#finish({ reason: "frontend_lost" });
  }

  async #run(): Promise<void> {
    try {
      while (!this.#stop.signal.aborted) {
        const ms = this.#group.nextRoundMs;
        if (ms !== 0 && this.#inboxes.every((inbox) => inbox.length === 0)) await this.#sleep(ms, true);
        // the turn of the event loop in which a burst arrives, so that it is one round's
        await new Promise((resolve) => setImmediate(resolve));
        const messages = this.#inboxes.map((inbox) => inbox.splice(0));
        for (const effect of this.#group.round(messages)) {
          if (this.#stop.signal.aborted) return;
          await this.#perform(effect);
        }
      }
    } catch (error) {
      const crashed = error instanceof EngineCrash;
      if (!crashed)
        for (const rank of this.indices.keys()) this.#tell({ event: "error", rank, error: `loop: ${(error as Error).message}` });
      await this.#finish({ reason: crashed ? "crashed" : "error", error: error as Error });
    }
  }

  async #perform(effect: Effect): Promise<void> {
    switch (effect.kind) {
      case "wait":
        await this.#sleep(effect.ms, false);
        return;
      case "outputs":
        this.#tell({ event: "outputs", rank: effect.rank, rows: effect.rows });
        this.#links[effect.rank]?.send(encodeOutputBatch(effect, this.#settings.index + effect.rank, this.#settings.outputColumns));
        return;
      case "dropped":
        this.#tell({ event: "reply_dropped", rank: effect.rank, reply: effect.reply });
        return;
      case "refusal":
        this.#refuse(effect);
        return;
      case "reply":
        if (effect.lateMs === 0) this.#reply(effect);
        else this.#later(effect.lateMs, () => this.#reply(effect));
    }
  }

  #reply({ rank, reply, callId }: Extract<Effect, { kind: "reply" }>): void {
    this.#tell({ event: "replied", rank, reply, ...(callId !== undefined && { callId }) });
    if (!(reply instanceof Uint8Array)) count(this.#replied[rank], operationOf(reply.$tag));
    if (reply instanceof Uint8Array) this.#links[rank]?.send(reply);
    else this.#links[rank]?.send(callId === undefined ? encodeControlOutput(reply) : encodeSlimReply(reply, this.#answered(rank, callId)));
  }

  /** A call of the second dialect as answered by a rank. */
  #answered(rank: number, callId: number): Answered {
    return { callId, engineIndex: this.#settings.index + rank };
  }

  #refuse({ rank, callId, message }: Extract<Effect, { kind: "refusal" }>): void {
    const reply = encodeSlimRefusal(message, this.#answered(rank, callId));
    this.#tell({ event: "replied", rank, reply, callId });
    this.#links[rank]?.send(reply);
  }

  #later(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#late.delete(timer);
      act();
    }, ms);
    this.#late.add(timer);
  }

  /** Waits, for ever without `ms`, until stopped or, if asked to, until a message comes. */
  #sleep(ms: number | undefined, wakes: boolean): Promise<void> {
    return new Promise((resolve) => {
      const { signal } = this.#stop;
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        this.#wake = undefined;
        resolve();
      };
      const timer = ms === undefined ? undefined : setTimeout(done, ms);
      signal.addEventListener("abort", done);
      if (wakes) this.#wake = done;
      if (signal.aborted) done();
    });
  }

  #finish(end: { reason: EngineEnd; error?: Error }): Promise<void> {
    this.#ending ??= this.#shutDown(end);
    return this.#ending;
  }

  async #shutDown(end: { reason: EngineEnd; error?: Error }): Promise<void> {
    this.#stop.abort(this.#stop.signal.reason ?? new Error(`the engine ended: ${end.reason}`));
    for (const timer of this.#late) clearTimeout(timer);
    const silent = end.reason === "killed" || end.reason === "crashed";
    await Promise.all(
      this.#links.map(async (link, rank) => {
        if (silent) link?.kill();
        else await link?.close();
        if (!silent && end.reason !== "error" && link !== undefined) this.#tell({ event: "stopped", rank });
      }),
    );
    this.#tell({ event: "ended", reason: end.reason });
    this.#settle(end);
  }
}

function count(counts: Map<string, number> | undefined, name: string): void {
  counts?.set(name, (counts.get(name) ?? 0) + 1);
}
