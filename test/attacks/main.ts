// Attacks on a relay, one after the other, while a client that behaves well is served and measured. Prints a table, and exits
// with 1 unless the relay survived all, the client was answered rightly, memory stayed within its bound, and the client's
// p99 in the windows with each attack was within three times that in the quiet windows between them.
// Run: npm run attacks [-- --seconds 2 --rounds 6 --only NAME]
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { attacks } from "./attacks.ts";
import { type Measured, mostGrowth, type Row, Run } from "./run.ts";

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "2" }, rounds: { type: "string", default: "6" }, only: { type: "string", default: "" } },
});
const say = (line: string) => process.stdout.write(`${line}\n`);
const mostRatio = 3;

const options = { windowMs: Number(values.seconds) * 1000, rounds: Number(values.rounds) };
const chosen = attacks.filter(({ name }) => name.includes(values.only));
if (!(options.windowMs > 0) || !(options.rounds > 0) || chosen.length === 0) throw new Error("usage: --seconds N --rounds N --only NAME");
say(
  `${new Date().toISOString()}, Node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model.trim()}), load ${loadavg()[0]?.toFixed(1)}`,
);
say(`each attack: ${options.rounds} windows of ${values.seconds} s, each behind a quiet one; the attacker kept apart from the others`);
say("");
say("| attack | tried | refused | survived | RSS MB before, peak, after | call p99 ms quiet, during | ratio | chunk gap p99 ms | ratio |");
say("|---|---|---|---|---|---|---|---|---|");

let missed = 0;
const run = new Run();
try {
  await run.start();
  for (const attack of chosen) print(await run.attack(attack, options));
} finally {
  await run.close();
}
say("");
say(missed === 0 ? "all held" : `${missed} did not hold`);
process.exitCode = missed === 0 ? 0 : 1;

function print({ attack, tried, refused, mistakes, memory, rounds }: Row): void {
  const how = [...refused].sort(([, a], [, b]) => b - a).map(([name, count]) => `${name}: ${count}`);
  const of = (what: keyof Measured) => {
    // of all windows of a kind together: a window has 300 calls, so its own p99 is its third worst
    const [quiet, during] = [p99(rounds.flatMap((round) => round.quiet[what])), p99(rounds.flatMap((round) => round.during[what]))];
    return { quiet, during, ratio: during / quiet };
  };
  const calls = of("calls");
  const gaps = of("gaps");
  const answered = rounds.reduce((sum, { during }) => sum + during.calls.length, 0);
  const grown = memory.peak - memory.before;
  const wrong = [
    ...(mistakes.length > 0 ? [`${mistakes.length} mistakes, such as ${mistakes[0]}`] : []),
    ...(grown > mostGrowth ? [`memory grew by ${megabytes(grown)} MB`] : []),
    ...(!(calls.ratio <= mostRatio && gaps.ratio <= mostRatio) ? ["p99 is too high"] : []),
  ];
  missed += wrong.length > 0 ? 1 : 0;
  const cells = [
    `${attack.name} (${attack.rate})`,
    String(tried),
    how.join(", ") || "none",
    mistakes.length === 0 ? `yes, ${answered} calls right` : "NO",
    [memory.before, memory.peak, memory.after].map(megabytes).join(", "),
    `${calls.quiet.toFixed(1)}, ${calls.during.toFixed(1)}`,
    calls.ratio.toFixed(2),
    `${gaps.quiet.toFixed(1)}, ${gaps.during.toFixed(1)}`,
    gaps.ratio.toFixed(2),
  ];
  say(`| ${cells.join(" | ")} |${wrong.length > 0 ? ` ${wrong.join("; ")}` : ""}`);
}

function p99(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? Number.NaN;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}
