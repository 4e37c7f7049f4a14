import { inspect } from "node:util";
import Table from "cli-table3";
import type { EngineReply } from "../transport/connection.ts";

const head = ["step", "engine", "reply", "ms"];

/** Collects replies and prints them: a table for people at a terminal, plain lines for everything else. */
export class ReplyTable {
  readonly #rows: string[][] = [];
  readonly #terminal = process.stdout.isTTY === true;

  /** Prints a line above the table. */
  title(text: string): void {
    process.stdout.write(`${text}\n`);
  }

  /** Adds the replies of one step; without a terminal they are printed at once. */
  add(step: string, replies: readonly EngineReply[]): void {
    const rows = replies.map(({ engine, reply, durationMs }, index) => [
      index === 0 || !this.#terminal ? step : "",
      String(engine),
      describe(reply),
      durationMs.toFixed(1),
    ]);
    this.#rows.push(...rows);
    if (!this.#terminal) for (const row of rows) process.stdout.write(`${line(row)}\n`);
  }

  /** Prints the table, at a terminal. */
  print(): void {
    if (!this.#terminal || this.#rows.length === 0) return;
    const table = new Table({ head, style: { head: [], compact: true }, colAligns: ["left", "right", "left", "right"] });
    table.push(...this.#rows);
    process.stdout.write(`${table.toString()}\n`);
  }
}

function line([step = "", engine = "", reply = "", duration = ""]: readonly string[]): string {
  return `${step.padEnd(34)} engine ${engine}  ${reply.padEnd(46)} ${duration.padStart(7)} ms`;
}

/** A reply's own fields, whatever they are. */
function describe(reply: object): string {
  return Object.entries(reply)
    .filter(([name, value]) => name !== "$tag" && value !== null && value !== "")
    .map(([name, value]) => `${name}: ${inspect(value, { breakLength: Number.POSITIVE_INFINITY })}`)
    .join(", ");
}
