import Table from "cli-table3";
import type { Change } from "./change.ts";
import type { Difference } from "./compare.ts";
import type { Skipped } from "./read-python.ts";

/** The exit code that says how bad a difference is: 0 nothing on the wire, 1 compatible, 2 breaking. */
export function exitCodeOf({ changes }: Difference): 0 | 1 | 2 {
  if (changes.some((change) => change.class.startsWith("breaking"))) return 2;
  return changes.some((change) => change.class === "compatible") ? 1 : 0;
}

/** A difference for a terminal of some width. */
export function printDifference(difference: Difference, width: number): string {
  const { before, after, changes, notInSchema, notCompared } = difference;
  const parts = [changes.length === 0 ? `${before} and ${after} say the same` : `from ${before} to ${after}\n${tableOf(changes, width)}`];
  if (notInSchema.length > 0) parts.push(`not in the schema, left out on purpose: ${notInSchema.join(", ")}`);
  if (notCompared.length > 0) {
    parts.push(`not compared, their source was not given: ${notCompared.map(({ name, file }) => `${name} (${file})`).join(", ")}`);
  }
  if (changes.length > 0) parts.push(summaryOf(changes));
  return parts.join("\n");
}

/** A difference as JSON. */
export function printJson(difference: Difference): string {
  return JSON.stringify(difference, null, 2);
}

/** What was skipped, one thing a line. */
export function printSkipped(skipped: readonly Skipped[]): string {
  return skipped.map(({ name, because, place }) => `${place.file}:${place.line}:${place.column}: skipped ${name}: ${because}`).join("\n");
}

function tableOf(changes: readonly Change[], width: number): string {
  // Classes have long names; a narrow terminal breaks them.
  const widths = width < 150 ? [30, 36, 22] : [41, 44, 24];
  const rest = Math.max(24, width - widths.reduce((sum, column) => sum + column, 0) - 5);
  const table = new Table({
    head: ["struct and field", "change", "class", "what peers of different age do"],
    colWidths: [...widths, rest],
    wordWrap: true,
    wrapOnWordBoundary: false,
    style: { head: [], border: [] },
  });
  for (const change of changes) {
    table.push([
      change.field === undefined ? change.struct : `${change.struct}\n.${change.field}`,
      describe(change),
      change.class,
      wrap(change.meaning, rest - 2),
    ]);
  }
  return table.toString();
}

/** Breaks a sentence between words. */
function wrap(text: string, width: number): string {
  return text.replaceAll(new RegExp(`(?=.{${width + 1}})(.{1,${width}}) `, "g"), "$1\n");
}

function describe({ kind, before, after, probably }: Change): string {
  const values = [before, after].filter((value) => value !== undefined).join(" -> ");
  return `${kind}${probably === true ? " (probably)" : ""}${values === "" ? "" : `: ${values}`}`;
}

function summaryOf(changes: readonly Change[]): string {
  const counts = new Map<string, number>();
  for (const change of changes) counts.set(change.class, (counts.get(change.class) ?? 0) + 1);
  return `${changes.length === 1 ? "1 change" : `${changes.length} changes`}: ${[...counts].map(([name, count]) => `${count} ${name}`).join(", ")}`;
}
