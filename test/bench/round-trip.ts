// The control round trip of the typed client against a bare zeromq.js frontend, each talking to a peer process of the same
// program with the same bytes, in interleaved rounds.
import { type ChildProcess, spawn } from "node:child_process";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { Pull, Router } from "zeromq";
import { createClient } from "../../src/index.ts";
import { encodeControlOutput, encodeControlRequest, encodeHandshakeInitMessage } from "../../src/messages.ts";
import { bind } from "../../src/node/index.ts";

/** One measured line: how much longer the typed call takes. */
export interface RoundTripRow {
  readonly name: string;
  readonly bytes: number;
  readonly bareMicroseconds: number;
  readonly ratio: number;
}

const path = `/checkpoints/${"step-000123/".repeat(72)}`;
const outcome = { $tag: "UpdateWeightFromDiskReqOutput", success: true, message: path.slice(0, 800) } as const;
const cases = [
  {
    name: "pauseScheduler",
    request: { $tag: "PauseSchedulerReqInput", mode: "keep" } as const,
    reply: { $tag: "PauseSchedulerReqOutput", success: true, message: "" } as const,
  },
  {
    name: "isSleeping",
    request: { $tag: "IsSleepingReqInput" } as const,
    reply: { $tag: "IsSleepingReqOutput", isSleeping: false } as const,
  },
  {
    name: "updateWeightFromDisk, 0.9 KiB path",
    request: { $tag: "UpdateWeightFromDiskReqInput", modelPath: path } as const,
    reply: outcome,
  },
];

/** A process of echoing engines; `replies` are TAG=HEX pairs. */
export function spawnEngines(address: string, count: number, replies: readonly string[]): ChildProcess {
  const program = fileURLToPath(new URL(`echo-engine${extname(import.meta.url)}`, import.meta.url));
  const args = [...process.execArgv, program, address, String(count), ...replies];
  return spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });
}

export const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

/** A frontend of bare zeromq.js for one engine: no typed values, no lanes, no deadlines. */
async function bareFrontend() {
  const handshake = new Router({ linger: 0 });
  const input = new Router({ linger: 0 });
  const output = new Pull({ linger: 0 });
  for (const socket of [handshake, input, output]) await socket.bind("tcp://127.0.0.1:0");
  return { handshake, input, output };
}

/** Measures `rounds` rounds of `calls` calls of each kind through each frontend. */
export async function benchRoundTrip(rounds = 40, calls = 60): Promise<RoundTripRow[]> {
  const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: 1 });
  const bare = await bareFrontend();
  const probe = { request: { $tag: "IsSchedulerPausedReqInput" }, reply: { $tag: "IsSchedulerPausedReqOutput", isPaused: false } } as const;
  const replies = [probe, ...cases].map(
    ({ request, reply }) => `${request.$tag}=${Buffer.from(encodeControlOutput(reply)).toString("hex")}`,
  );
  const children = [listener.handshakeAddress, bare.handshake.lastEndpoint ?? ""].map((address) => spawnEngines(address, 1, replies));
  try {
    const [identity] = await bare.handshake.receive();
    const addresses = { inputs: [bare.input.lastEndpoint ?? ""], outputs: [bare.output.lastEndpoint ?? ""] };
    await bare.handshake.send([identity ?? "", encodeHandshakeInitMessage({ addresses })]);
    await bare.input.receive();
    const client = createClient(await listener.accept({ timeoutMs: 20_000 }));
    const rows: RoundTripRow[] = [];
    for (const { name, request } of cases) {
      const payload = Buffer.from(encodeControlRequest(request));
      const type = Buffer.of(2);
      const contestants = {
        bare: async () => {
          await bare.input.send([identity ?? "", type, payload]);
          await bare.output.receive();
        },
        // the peer answers in no state at all, so the last case would be refused: it is measured without the guard
        typed: () => client.control(request, request.$tag === "UpdateWeightFromDiskReqInput" ? { guard: false } : {}),
      };
      for (const call of Object.values(contestants)) for (let index = 0; index < 5000; index++) await call();
      const ratios: number[] = [];
      const bareMedians: number[] = [];
      for (let round = 0; round < rounds; round++) {
        const medians = { bare: 0, typed: 0 };
        const order = round % 2 === 0 ? (["bare", "typed"] as const) : (["typed", "bare"] as const);
        for (const contestant of order) {
          const times: number[] = [];
          for (let index = 0; index < calls; index++) {
            const start = performance.now();
            await contestants[contestant]();
            times.push(performance.now() - start);
          }
          medians[contestant] = median(times);
        }
        ratios.push(medians.typed / medians.bare);
        bareMedians.push(medians.bare);
      }
      rows.push({ name, bytes: payload.length, bareMicroseconds: median(bareMedians) * 1000, ratio: median(ratios) });
    }
    await client.close();
    return rows;
  } finally {
    for (const socket of [bare.handshake, bare.input, bare.output]) socket.close();
    await listener.close();
    for (const child of children) child.kill("SIGKILL");
  }
}
