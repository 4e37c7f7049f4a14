import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { EngineStarter, ScriptFlags, ScriptRule } from "../contract/engine-scripts.ts";

/** A rule as a flag: `OP@RANK#TIMES=MESSAGE`. */
function ruleText({ op, rank, times, message, ms }: ScriptRule): string {
  const value = message ?? ms;
  return `${op}${rank === undefined ? "" : `@${rank}`}${times === undefined ? "" : `#${times}`}${value === undefined ? "" : `=${value}`}`;
}

/** A script's flags as command line flags. */
export function commandLineOf(flags: ScriptFlags): string[] {
  return Object.entries(flags).flatMap(([name, value]) => {
    const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    if (value === true) return [flag];
    if (!Array.isArray(value)) return [flag, String(value)];
    if (value.every((item) => typeof item === "string")) return [flag, value.join(",")];
    return (value as ScriptRule[]).flatMap((rule) => [flag, ruleText(rule)]);
  });
}

/** A process that writes JSON lines. */
export class LineProcess {
  readonly #child: ChildProcess;
  readonly #lines: Record<string, unknown>[] = [];
  readonly #watchers = new Set<() => void>();
  #errors = "";
  /** How it ended. */
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;

  constructor(command: string, args: readonly string[]) {
    this.#child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.stderr?.on("data", (data) => {
      this.#errors += data;
    });
    const { stdout } = this.#child;
    if (stdout !== null) {
      createInterface({ input: stdout }).on("line", (line) => {
        this.#lines.push(JSON.parse(line));
        for (const watcher of this.#watchers) watcher();
      });
    }
    this.exited = once(this.#child, "close").then(([code, signal]) => {
      for (const watcher of this.#watchers) watcher();
      return { code, signal };
    });
  }

  /** Everything it wrote so far. */
  get lines(): readonly Record<string, unknown>[] {
    return this.#lines;
  }

  /** What it wrote to stderr so far. */
  get errors(): string {
    return this.#errors;
  }

  /** Writes a line to it. */
  tell(line: object): void {
    this.#child.stdin?.write(`${JSON.stringify(line)}\n`);
  }

  /** The first line that fits; throws when the process ends or takes too long. */
  line(fits: (line: Record<string, unknown>) => boolean, withinMs = 60_000): Promise<Record<string, unknown>> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = this.#lines.find(fits);
        if (found !== undefined) end(() => resolve(found));
        else if (this.#child.exitCode !== null || this.#child.signalCode !== null) fail("ended");
      };
      const fail = (how: string) =>
        end(() => reject(new Error(`the process ${how}: ${JSON.stringify(this.#lines.slice(-5))} ${this.#errors}`)));
      const timer = setTimeout(() => fail("took too long"), withinMs);
      const end = (settle: () => void) => {
        clearTimeout(timer);
        this.#watchers.delete(look);
        settle();
      };
      this.#watchers.add(look);
      look();
    });
  }

  /** Ends its stdin. */
  closeStdin(): void {
    this.#child.stdin?.end();
  }

  /** Sends a signal and waits until it is gone. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), 10_000);
    this.#child.kill(signal);
    await this.exited;
    clearTimeout(timer);
  }
}

/** Starts scripts' engines as processes: `command` with `args`, then the flags that the real peer and ours share. */
export function engineProcess(command: string, args: readonly string[] = []): EngineStarter {
  return (handshake, ranks, flags) => {
    const child = new LineProcess(command, [...args, "--handshake", handshake, "--ranks", String(ranks), ...commandLineOf(flags)]);
    return {
      ready: child.line(({ event }) => event === "all_ready").then(() => {}),
      exited: child.exited.then(() => {}),
      stop: () => child.stop(),
    };
  };
}
