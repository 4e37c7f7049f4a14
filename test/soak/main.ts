// Mixed operations and streams at full speed for a long time, with random aborts and deadlines, on engines that stand still,
// answer late and lose replies. Prints what became of them, and exits with 1 unless every call settled, every reply was its
// call's, every stream had its tokens in order and the heap stayed flat. Run: node --expose-gc --import tsx test/soak/main.ts [--minutes 10] [--seed N]
import { spawn } from "node:child_process";
import { once } from "node:events";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createClient } from "../../src/index.ts";
import { connect } from "../../src/node/index.ts";
import { randomOf } from "../faults/random.ts";
import { Soak } from "./soak.ts";
import { SoakStreams } from "./streams.ts";

const { values } = parseArgs({ options: { minutes: { type: "string", default: "10" }, seed: { type: "string" } } });
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const durationMs = Number(values.minutes) * 60_000;
const collect = (globalThis as { gc?: () => void }).gc;
if (collect === undefined || !(durationMs > 0) || !Number.isInteger(seed))
  throw new Error("usage: node --expose-gc ... --minutes N [--seed N]");
const say = (line: string) => process.stdout.write(`${line}\n`);
say(`seed ${seed}, ${values.minutes} minutes`);

let rejections = 0;
const warnings: string[] = [];
process.on("unhandledRejection", () => rejections++);
process.on("warning", ({ message }) => warnings.push(message));

const handshake = `tcp://127.0.0.1:${20_000 + (process.pid % 10_000)}`;
const program = fileURLToPath(new URL(`engines${extname(import.meta.url)}`, import.meta.url));
const engines = spawn(process.execPath, [...process.execArgv, program, handshake, String(seed)], {
  stdio: ["ignore", "ignore", "inherit"],
});
const connection = await connect({ handshake, count: 8, timeoutMs: 60_000 });
const soak = new Soak(createClient(connection), randomOf(seed));
const streams = new SoakStreams(connection, randomOf(seed + 2));

/** Heap in use while no call is under way, in bytes. */
const heap: number[] = [];
const slices = 40;
for (let slice = 0; slice < slices; slice++) {
  await Promise.all([soak.run(durationMs / slices), streams.run(durationMs / slices)]);
  // twice: the first collection may leave what finalizers still hold
  collect();
  await new Promise((resolve) => setTimeout(resolve, 20));
  collect();
  heap.push(process.memoryUsage().heapUsed);
}
const { counts } = connection;
await soak.close();
engines.kill("SIGKILL");
await once(engines, "exit");

const lastHalf = heap.slice(slices / 2);
const quarters = [lastHalf.slice(0, slices / 4), lastHalf.slice(slices / 4)].map(median);
const [before = 0, after = 0] = quarters;
const growth = after / before - 1;
say(`calls ${soak.calls}, settled ${soak.settled}, misattributed ${soak.misattributed}`);
say(`endings: ${[...soak.endings].map(([name, count]) => `${name} ${count}`).join(", ")}`);
say(`operations: ${[...soak.operations].map(([name, count]) => `${name} ${count}`).join(", ")}`);
say(`replies late ${counts.lateReplies}, lost ${counts.lostReplies}, unexpected ${counts.unexpectedReplies}`);
say(`streams ${streams.opened}, ended ${streams.ended}: ${[...streams.endings].map(([name, count]) => `${name} ${count}`).join(", ")}`);
say(`tokens ${streams.tokens}, outputs of unknown requests ${counts.unexpectedOutputs}`);
say(`unhandled rejections ${rejections}, warnings ${warnings.length}`);
say(`heap after collection: first half ${megabytes(median(heap.slice(0, slices / 2)))}, last half ${megabytes(median(lastHalf))}`);
say(`heap over the last half: ${quarters.map(megabytes).join(" then ")}, ${(growth * 100).toFixed(1)} %`);
const whole = soak.calls > 0 && soak.settled === soak.calls && soak.misattributed === 0 && soak.failures.length === 0;
const streamed = streams.ended === streams.opened && streams.failures.length === 0 && counts.unexpectedOutputs === 0;
const quiet = rejections === 0 && warnings.length === 0 && counts.unexpectedReplies === 0 && counts.malformedMessages === 0;
for (const failure of [...soak.failures.slice(0, 10), ...streams.failures.slice(0, 10)]) say(`FAILED ${failure}`);
const well = whole && streamed && quiet && Math.abs(growth) <= 0.05;
say(well ? "all is well" : "NOT WELL");
process.exitCode = well ? 0 : 1;

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(2)} MB`;
}
