// One scenario of the fault suite, in a process of its own: it prints its counts as a line of JSON and then has to end by
// itself, because nothing is left that could keep it alive. argv: the scenario.
import { clockJumps } from "./clock.ts";
import { closings } from "./closings.ts";
import { flood } from "./flood.ts";
import { fullQueue, manyCalls } from "./load.ts";
import { wrongReplies } from "./replies.ts";
import { restarts } from "./restarts.ts";
import { Setting } from "./setting.ts";
import { signals } from "./signals.ts";

const scenarios: Readonly<Record<string, (setting: Setting) => Promise<void>>> = {
  wrongReplies,
  signals,
  flood,
  restarts,
  manyCalls,
  fullQueue,
  clockJumps,
  closings,
};

let rejections = 0;
const warnings: string[] = [];
process.on("unhandledRejection", (reason) => {
  rejections++;
  process.stderr.write(`unhandled rejection: ${String(reason)}\n`);
});
process.on("warning", ({ message }) => warnings.push(message));

const setting = new Setting();
let failure: string | undefined;
try {
  await scenarios[process.argv[2] ?? ""]?.(setting);
} catch (error) {
  failure = String((error as Error).stack ?? error);
}
await setting.end();
// what was rejected meanwhile has been reported by then
await new Promise(setImmediate);
process.stdout.write(`${JSON.stringify({ ...setting.tally, rejections, warnings, failure })}\n`);
