import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

interface Waiting {
  readonly resolve: (line: string) => void;
  readonly reject: (error: Error) => void;
}

/** A program that answers every line with one line, in order. */
export class LineService {
  readonly #child: ChildProcess;
  readonly #waiting: Waiting[] = [];
  readonly #ended: Promise<unknown>;
  #errors = "";

  constructor(command: string, args: readonly string[]) {
    this.#child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.stderr?.on("data", (data) => {
      this.#errors += data;
    });
    // a write to a program that has gone is told by its end, which follows
    this.#child.stdin?.on("error", () => {});
    const { stdout } = this.#child;
    if (stdout !== null) createInterface({ input: stdout }).on("line", (line) => this.#waiting.shift()?.resolve(line));
    this.#ended = once(this.#child, "close").then(
      () => this.#fail("ended"),
      (error) => this.#fail(`did not start: ${error}`),
    );
  }

  /** Writes a line and resolves with its answer. Rejects when the program ends before, or takes too long. */
  ask(line: string, withinMs = 60_000): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#fail(`gave no answer within ${withinMs} ms`), withinMs);
      const settle =
        <Value>(then: (value: Value) => void) =>
        (value: Value) => {
          clearTimeout(timer);
          then(value);
        };
      this.#waiting.push({ resolve: settle(resolve), reject: settle(reject) });
      this.#child.stdin?.write(`${line}\n`);
    });
  }

  /** Ends it. */
  async stop(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  // answers come in order, so one that is missing leaves the rest without meaning
  #fail(how: string): void {
    for (const { reject } of this.#waiting.splice(0)) reject(new Error(`the program ${how}: ${this.#errors}`));
  }
}
