import Table from "cli-table3";
import type { RequestsReport } from "./demo-requests.ts";

/** Prints which weights served the requests: a table for people at a terminal, plain lines for everything else. */
export function printRequests({ sent, whole, tokens, lost, served }: RequestsReport): void {
  process.stdout.write("Which weights served the requests:\n");
  const rows = served.map(({ loads, tokens: given, requests }) => [weightsNamed(loads), String(given), String(requests)] as const);
  if (process.stdout.isTTY === true) {
    const head = ["weights", "tokens", "requests"];
    const table = new Table({ head, style: { head: [], compact: true }, colAligns: ["left", "right", "right"] });
    table.push(...rows.map((row) => [...row]));
    process.stdout.write(`${table.toString()}\n`);
  } else {
    for (const [weights, given, requests] of rows) {
      process.stdout.write(`${weights.padEnd(34)} ${given.padStart(6)} tokens in ${requests.padStart(4)} requests\n`);
    }
  }
  process.stdout.write(`${sent} requests sent, ${whole} got every token in order: ${tokens} tokens, ${lost} lost\n`);
}

function weightsNamed(loads: number): string {
  return loads === 0 ? "those it started with" : `after bucket ${loads}`;
}
