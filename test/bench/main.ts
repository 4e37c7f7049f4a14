// Prints ratios, medians of interleaved rounds in one run, beside their goals; exits 1 when one is missed. The machine's
// speed changes by the second, so only ratios inside a round mean anything.
import { spawnSync } from "node:child_process";
import { benchCodec } from "./codec.ts";
import { benchDispatch, benchThroughput } from "./dispatch.ts";
import { benchInFlight } from "./in-flight.ts";
import { benchRelay, benchRelayClients } from "./relay.ts";
import { benchRoundTrip } from "./round-trip.ts";

let missed = 0;

function line(name: string, detail: string, ratio: number, goal: number, atLeast: boolean): void {
  const met = atLeast ? ratio >= goal : ratio <= goal;
  if (!met) missed++;
  const relation = atLeast ? "at least" : "at most";
  console.log(
    `${name.padEnd(44)} ${detail.padStart(22)}  x ${ratio.toFixed(2).padStart(5)}  goal ${relation} ${goal.toFixed(2)}  ${met ? "met" : "MISSED"}`,
  );
}

if (process.argv[2] === "round-trip") {
  console.log("Control round trip: median time over that of bare zeromq.js, same bytes, same peer program");
  for (const { name, bytes, bareMicroseconds, ratio } of await benchRoundTrip()) {
    line(name, `${bytes} B, bare ${bareMicroseconds.toFixed(0)} us`, ratio, 1.15, false);
  }
  console.log("\n64 calls in flight, one for each of 64 engines: time per call over that of bare zeromq.js with as many");
  const { name, bytes, bareMicroseconds, ratio } = await benchInFlight();
  line(name, `${bytes} B, bare ${bareMicroseconds.toFixed(1)} us`, ratio, 1.6, false);
} else if (process.argv[2] === "output") {
  console.log("\nOutput of 256 requests handed to as many loops that wait: time over that of decoding it");
  const { bytes, decodeMicroseconds, ratio, withTurns } = await benchDispatch();
  line("dispatch batch-256", `${bytes} B, decode ${decodeMicroseconds.toFixed(1)} us`, ratio, 1.5, false);
  console.log(`until the last of the loops has had its turn, which is the platform's: x ${withTurns.toFixed(2)}`);
  const tokens = await benchThroughput();
  console.log(`\nThrough sockets, batches of 256 rows with one token each: ${(tokens / 1e6).toFixed(2)} million tokens per second`);
} else if (process.argv[2] === "relay") {
  console.log("A call through a relay: time over the sum of an echo over ws and an echo over bare zeromq.js, the same bytes");
  const relayLine = ({ name, bytes, sumMicroseconds, ratio }: Awaited<ReturnType<typeof benchRelay>>[number], goal: number) =>
    line(name, `${bytes} B, sum ${sumMicroseconds.toFixed(0)} us`, ratio, goal, false);
  for (const row of await benchRelay(1)) relayLine({ ...row, name: `${row.name}, 1 in flight` }, 1.4);
  for (const row of await benchRelay(64)) relayLine({ ...row, name: `${row.name}, 64 in flight` }, 1.6);
  const { p50, p99, perSecond } = await benchRelayClients();
  console.log(`200 clients with 2 calls each: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, ${perSecond.toFixed(0)} calls/s\n`);
} else {
  // in processes of their own: what one part leaves on the heap and in inline caches would be measured in the others
  for (const part of ["round-trip", "output", "relay"]) {
    const { status } = spawnSync(process.execPath, [...process.execArgv, process.argv[1] ?? "", part], { stdio: "inherit" });
    missed += status ?? 1;
  }
  console.log("\nCodec: times the speed of a reused Encoder and Decoder of @msgpack/msgpack");
  for (const row of await benchCodec()) {
    line(`${row.direction} ${row.payload}`, `${row.bytes} B, ${row.microseconds.toFixed(2)} us`, row.ratio, row.goal, true);
  }
  console.log(missed === 0 ? "\nall goals met" : `\n${missed} goals missed`);
}
process.exitCode = missed;
