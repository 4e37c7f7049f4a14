import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Client, type ClientOptions, createClient, type EngineReply } from "../../../src/index.ts";
import { type BindOptions, bind, type Listener } from "../../../src/node/index.ts";
import { isEngineWireError } from "../../../src/wire/errors.ts";
import { type HostOrder, type HostReport, type Opening, stopOrder, type Task } from "./orders.ts";

/** What a scenario counts; the suite adds them up. */
export interface Tally {
  faults: number;
  calls: number;
  settled: number;
  misattributed: number;
}

/** How a call ended: `ok`, or the code of its error. */
export type Ending = "ok" | string;

/** A process with obedient engines. */
export interface EngineHost {
  readonly process: ChildProcess;
  /** Starts an engine; resolves when it is through the handshake, rejects when that fails. */
  start(address: string, index: number, opening?: Opening): Promise<void>;
  /** Closes its engines. */
  stop(): void;
  /** Resolves when the request with this id has arrived, also if it has already. */
  received(id: string): Promise<void>;
}

/** Processes, connections and counts of one scenario; `end` takes all of them down. */
export class Setting {
  readonly tally: Tally = { faults: 0, calls: 0, settled: 0, misattributed: 0 };
  readonly #ends: (() => unknown)[] = [];
  #ids = 0;

  /** Notes that faults were injected. */
  inject(count = 1): void {
    this.tally.faults += count;
  }

  /** A process for obedient engines. */
  host(): EngineHost {
    const child = fork(fileURLToPath(new URL("engine-host.ts", import.meta.url)), { execArgv: ["--import", "tsx"] });
    this.#kills(child);
    // one for each start that a frontend's end leaves without a report
    child.setMaxListeners(0);
    const seen = new Set<string>();
    child.on("message", (message: HostReport) => "received" in message && seen.add(message.received));
    const report = (wanted: (message: HostReport) => boolean): Promise<void> =>
      new Promise((resolve, reject) => {
        const look = (message: HostReport): void => {
          if ("failed" in message) reject(new Error(message.failed));
          else if (wanted(message)) resolve();
          else return;
          child.off("message", look);
        };
        child.on("message", look);
      });
    return {
      process: child,
      start(address, index, opening = "whole") {
        child.send({ address, index, opening } satisfies HostOrder);
        return report((message) => "up" in message && message.up === index);
      },
      stop: () => void child.send(stopOrder),
      async received(id) {
        if (!seen.has(id)) await report((message) => "received" in message && message.received === id);
      },
    };
  }

  /** An `enginewire engine`, and a way to wait for one of its lines. */
  engine(...flags: string[]): { readonly process: ChildProcess; line(wanted: string): Promise<void> } {
    const main = fileURLToPath(new URL("../../../src/cli/main.ts", import.meta.url));
    const child = spawn(process.execPath, ["--import", "tsx", main, "engine", ...flags], { stdio: ["ignore", "pipe", "inherit"] });
    this.#kills(child);
    const lines: string[] = [];
    const reader = createInterface({ input: child.stdout });
    reader.on("line", (line) => lines.push(line));
    return {
      process: child,
      async line(wanted) {
        while (!lines.some((line) => line.includes(wanted))) await once(reader, "line");
      },
    };
  }

  /** A listener on a free port. */
  async bind(options: Partial<BindOptions> = {}): Promise<Listener> {
    const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: 1, lingerMs: 0, probeTimeoutMs: 30_000, ...options });
    this.#ends.push(() => listener.close());
    return listener;
  }

  /** A client of a listener's engines, without the guard unless asked for: obedient engines have no state. */
  async accept(listener: Listener, options: ClientOptions = { guard: false }): Promise<Client> {
    return createClient(await listener.accept({ timeoutMs: 60_000 }), options);
  }

  /** A client with this many engines in one host. */
  async connect(host: EngineHost, count: number, options: Partial<BindOptions> = {}): Promise<Client> {
    const listener = await this.bind({ count, ...options });
    for (let index = 0; index < count; index++) host.start(listener.handshakeAddress, index).catch(() => {});
    return this.accept(listener);
  }

  /** A fresh id for a task. */
  id(): string {
    return `task ${this.#ids++}`;
  }

  /** Asks one engine to answer in some manner, and checks whose reply came. */
  async ask(client: Client, engine: number, task: Task, options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<Ending> {
    const call = client.setInternalState({ serverArgs: { ...task } }, { timeoutMs: 60_000, engines: [engine], ...options });
    return this.count(call, ([answer]) => {
      const { id, engine: from } = (answer?.reply.serverArgs ?? {}) as { id?: string; engine?: number };
      return id === task.id && from === engine && answer?.engine === engine;
    });
  }

  /** Counts any call, and whether its replies are its own. */
  async count<Reply extends EngineReply>(call: Promise<readonly Reply[]>, own: (replies: readonly Reply[]) => boolean): Promise<Ending> {
    this.tally.calls++;
    try {
      const replies = await call;
      this.tally.settled++;
      if (!own(replies)) this.tally.misattributed++;
      return "ok";
    } catch (error) {
      this.tally.settled++;
      if (isEngineWireError(error)) return error.code;
      throw error;
    }
  }

  /** Takes everything down, the last first. */
  async end(): Promise<void> {
    for (const end of this.#ends.splice(0).reverse()) await end();
  }

  #kills(child: ChildProcess): void {
    const gone = once(child, "exit");
    this.#ends.push(() => {
      child.kill("SIGKILL");
      return gone;
    });
  }
}

/** Waits until something holds; the time limit is far beyond what a busy machine needs. */
export async function until(what: string, holds: () => boolean, timeoutMs = 60_000): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`in ${timeoutMs} ms it did not come about that ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Fails the scenario with both values when they differ. */
export function same(what: string, found: unknown, expected: unknown): void {
  if (JSON.stringify(found) === JSON.stringify(expected)) return;
  throw new Error(`${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(found)}`);
}
