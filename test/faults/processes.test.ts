// Runs the drivers, each in a process of its own with engines in further processes, and reports what all of them did.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, it } from "vitest";

/** What a driver prints, and how its process ended. */
interface Outcome {
  readonly faults: number;
  readonly calls: number;
  readonly settled: number;
  readonly misattributed: number;
  readonly rejections: number;
  readonly warnings: readonly string[];
  readonly failure?: string;
  readonly exit: string;
}

const scenarios = {
  flood: "a million messages that nobody asked for keep memory bounded and calls answered",
  closings: "closing at every await point of accept and of calls settles everything",
  signals: "engines that are killed, stopped, continued and crash in the middle of calls",
  restarts: "engines that register twice, have a dead output, or are started again under a taken index",
  wrongReplies: "replies late, double, missing, overtaking, cut, too large, of wrong and of unknown tags",
  manyCalls: "10,000 calls at once, with shared signals, aborts and deadlines among them",
  fullQueue: "an engine that takes nothing more costs the others nothing",
  clockJumps: "jumps of the system clock move no deadline",
} as const;

type Scenario = keyof typeof scenarios;
const names = Object.keys(scenarios) as Scenario[];
const outcomes = new Map<Scenario, Outcome>();
// far beyond what a busy machine needs: a driver that takes longer does not end by itself
const patienceMs = 150_000;

async function drive(scenario: Scenario): Promise<Outcome> {
  const program = fileURLToPath(new URL("driver/main.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", "tsx", program, scenario], { stdio: ["ignore", "pipe", "inherit"] });
  const timer = setTimeout(() => child.kill("SIGKILL"), patienceMs);
  let printed = "";
  child.stdout.on("data", (data) => {
    printed += data;
  });
  const [code, signal] = await once(child, "close");
  clearTimeout(timer);
  const nothing = { faults: 0, calls: 0, settled: 0, misattributed: 0, rejections: 0, warnings: [], failure: "it printed nothing" };
  return { ...(printed === "" ? nothing : JSON.parse(printed)), exit: signal ?? `code ${code}` };
}

beforeAll(async () => {
  const waiting = [...names];
  // three at a time: each is a client and one or more engines, and they mostly wait for each other
  const lines = Array.from({ length: 3 }, async () => {
    for (let scenario = waiting.shift(); scenario !== undefined; scenario = waiting.shift()) outcomes.set(scenario, await drive(scenario));
  });
  await Promise.all(lines);
}, 4 * patienceMs);

it.each(names.map((scenario) => [scenario, scenarios[scenario]] as const))("%s: %s", (scenario) => {
  const { failure, warnings, exit } = outcomes.get(scenario) ?? {};
  expect(failure).toBeUndefined();
  expect(warnings).toEqual([]);
  // by itself: a handle that was left would keep it until the driver above loses patience
  expect(exit).toBe("code 0");
});

it("settles every call, attributes every reply, leaves nothing behind", () => {
  const total = { faults: 0, calls: 0, settled: 0, misattributed: 0, rejections: 0, handlesLeft: 0 };
  for (const outcome of outcomes.values()) {
    for (const name of ["faults", "calls", "settled", "misattributed", "rejections"] as const) total[name] += outcome[name];
    if (outcome.exit !== "code 0") total.handlesLeft++;
  }
  process.stdout.write(
    `${Object.entries(total)
      .map(([name, count]) => `${name} ${count}`)
      .join(", ")}\n`,
  );
  expect(total).toMatchObject({ settled: total.calls, misattributed: 0, rejections: 0, handlesLeft: 0 });
  expect(total.faults).toBeGreaterThan(1_000_000);
  expect(total.calls).toBeGreaterThan(10_000);
});
