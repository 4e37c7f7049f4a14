import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { availableParallelism, constants, setPriority } from "node:os";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { Attack } from "./attacks.ts";
import {
  type AttackerBegun,
  type AttackerReport,
  attackersStreams,
  type ClientReport,
  clientsStream,
  type RelayReport,
} from "./messages.ts";

/** How much the relay's resident memory may grow in an attack, in bytes: a small part of what its limits allow one address. */
export const mostGrowth = 100e6;

/** What the client has measured in one window. */
export type Measured = Pick<ClientReport, "calls" | "gaps">;

/** What came out for one attack. */
export interface Row {
  readonly attack: Attack;
  readonly tried: number;
  readonly refused: ReadonlyMap<string, number>;
  /** Whether the relay is up, and all that it is to the client was right. */
  readonly mistakes: readonly string[];
  /** Resident memory of the relay before, at most, and after, in bytes. */
  readonly memory: { readonly before: number; readonly peak: number; readonly after: number };
  /** Milliseconds of the client's calls and between the chunks of its stream, in windows without and with the attack. */
  readonly rounds: readonly { readonly quiet: Measured; readonly during: Measured }[];
  /** The relay when the attack was over. */
  readonly report: RelayReport;
}

export interface RunOptions {
  /** Length of a window, in milliseconds; each attack has as many quiet ones, in turn with its own. */
  readonly windowMs: number;
  readonly rounds: number;
}

/** A run: a relay, its engines, a client and an attacker, each a process of its own. */
export class Run {
  readonly #relay: ChildProcess;
  readonly #children: ChildProcess[] = [];
  #client!: ChildProcess;
  #attacker!: ChildProcess;
  #url = "";
  #once = "";
  /** Why the relay has ended; undefined while it is up. */
  ended: string | undefined;

  constructor() {
    this.#relay = this.#start("relay-process");
    this.#relay.on("exit", (code, signal) => {
      this.ended = `the relay ended with ${code ?? signal}`;
    });
  }

  /** Starts all; resolves when the client measures. */
  async start(): Promise<void> {
    const { handshake } = await answer<{ handshake: string }>(this.#relay);
    // the client's engines: one that is asked apart from one that generates, for an engine answers between its steps
    this.#start("engines-process", handshake, "0+2", `${clientsStream}+1`);
    const attacked = this.#start("engines-process", handshake, `${attackersStreams}+1`);
    const { url, once: token } = await answer<{ url: string; once: string }>(this.#relay);
    this.#url = url;
    this.#once = token;
    this.#client = this.#start("client-process", url);
    this.#attacker = this.#start("attacker-process");
    await Promise.all([answer(this.#client), answer(this.#attacker)]);
    // a real attacker has a machine of its own, and so has the engine that it keeps busy
    const theirs = [this.#attacker, attacked];
    for (const child of this.#children) keepApart(child.pid ?? 0, theirs.includes(child));
  }

  /** Ends all processes. */
  async close(): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        child.kill("SIGKILL");
        await once(child, "exit");
      }),
    );
  }

  /** Carries an attack out, in windows between quiet ones. */
  async attack(attack: Attack, { windowMs, rounds }: RunOptions): Promise<Row> {
    const measured: { readonly quiet: Measured; readonly during: Measured }[] = [];
    const mistakes: string[] = [];
    const refused = new Map<string, number>();
    let tried = 0;
    const before = this.#memory();
    let peak = before;
    const measure = async (): Promise<Measured> => {
      this.#client.send({});
      const report = await answer<ClientReport>(this.#client);
      mistakes.push(...report.mistakes);
      return report;
    };
    for (let round = 0; round < rounds && this.ended === undefined; round++) {
      await measure();
      await pass(windowMs);
      const quiet = await measure();
      this.#attacker.send({ start: attack.name, url: this.#url, once: this.#once });
      // a poor machine may need a while
      await answer<AttackerBegun>(this.#attacker);
      const end = performance.now() + windowMs * (attack.longer ?? 1);
      // the first of it meets what was quiet
      await pass(Math.min(100, windowMs / 4));
      await measure();
      while (performance.now() < end && this.ended === undefined) {
        peak = Math.max(peak, this.#memory());
        await pass(20);
      }
      measured.push({ quiet, during: await measure() });
      this.#attacker.send({ stop: true });
      const report = await answer<AttackerReport>(this.#attacker);
      tried += report.tried;
      for (const [how, count] of Object.entries(report.refused)) refused.set(how, (refused.get(how) ?? 0) + count);
      // what the attack has left behind is not the quiet that follows
      await pass(Math.min(500, windowMs));
    }
    await measure();
    this.#relay.send({});
    const report = await answer<RelayReport>(this.#relay);
    const served = measured.every(({ during }) => during.calls.length > 0 && during.gaps.length > 0);
    if (this.ended !== undefined) mistakes.push(this.ended);
    else if (!served) mistakes.push("the client was not served");
    return { attack, tried, refused, mistakes, memory: { before, peak, after: this.#memory() }, rounds: measured, report };
  }

  #start(name: string, ...args: readonly string[]): ChildProcess {
    const program = fileURLToPath(new URL(`${name}${extname(import.meta.url)}`, import.meta.url));
    const child = fork(program, args, { execArgv: ["--import", "tsx"], stdio: ["ignore", "ignore", "inherit", "ipc"] });
    this.#children.push(child);
    return child;
  }

  /** Resident bytes of the relay; 0 where it has ended. */
  #memory(): number {
    try {
      const [, pages] = readFileSync(`/proc/${this.#relay.pid}/statm`, "utf8").split(" ");
      return Number(pages) * 4096;
    } catch {
      return 0;
    }
  }
}

/**
 * Gives the attacker a core of its own and all others the rest. Where a process cannot be kept on a core, a low priority has
 * to do: Linux still lets such a process end its slice of milliseconds before one that wakes has its turn.
 */
function keepApart(pid: number, isTheirs: boolean): void {
  const last = availableParallelism() - 1;
  const cores = isTheirs ? `${last}` : `0-${last - 1}`;
  if (last > 0 && spawnSync("taskset", ["--all-tasks", "--cpu-list", "--pid", cores, String(pid)]).status === 0) return;
  if (isTheirs) setPriority(pid, constants.priority.PRIORITY_LOW);
}

function answer<Message>(child: ChildProcess): Promise<Message> {
  return new Promise((resolve, reject) => {
    const heard = (message: unknown): void => {
      child.off("exit", ended);
      resolve(message as Message);
    };
    const ended = (): void => {
      child.off("message", heard);
      reject(new Error(`${child.spawnargs.at(-1)} ended before it answered`));
    };
    child.once("message", heard);
    child.once("exit", ended);
  });
}

function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
