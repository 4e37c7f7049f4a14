// A call through a relay against the sum of its parts: an echo over `ws` and an echo over bare zeromq.js, the same bytes,
// each peer a process of its own, in interleaved rounds.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { extname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import WebSocket from "ws";
import { encodeCall } from "../../generated/relay/encoders.ts";
import { createClient } from "../../src/index.ts";
import { type ControlRequestInit, encodeControlOutput, encodeControlRequest } from "../../src/messages.ts";
import { connect } from "../../src/web/index.ts";
import { bareFrontend } from "./in-flight.ts";
import { median, spawnEngines } from "./round-trip.ts";

/** One measured line: how much longer a call takes than both echoes together. */
export interface RelayRow {
  readonly name: string;
  readonly bytes: number;
  /** Microseconds of the two echoes. */
  readonly sumMicroseconds: number;
  readonly ratio: number;
}

const path = `/checkpoints/${"step-000123/".repeat(72)}`;
const cases: readonly {
  readonly name: string;
  readonly request: ControlRequestInit;
  readonly reply: Parameters<typeof encodeControlOutput>[0];
}[] = [
  { name: "isSleeping", request: { $tag: "IsSleepingReqInput" }, reply: { $tag: "IsSleepingReqOutput", isSleeping: false } },
  {
    name: "updateWeightFromDisk, 0.9 KiB path",
    request: { $tag: "UpdateWeightFromDiskReqInput", modelPath: path },
    reply: { $tag: "UpdateWeightFromDiskReqOutput", success: true, message: path.slice(0, 800) },
  },
];
const probe = { $tag: "IsSchedulerPausedReqOutput", isPaused: false } as const;

interface Child {
  readonly child: ChildProcess;
  /** The next line it says. */
  line(): Promise<Record<string, string>>;
}

function start(...args: string[]): Child {
  const program = fileURLToPath(new URL(`relay-process${extname(import.meta.url)}`, import.meta.url));
  const child = spawn(process.execPath, [...process.execArgv, program, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { child, line: async () => JSON.parse((await lines.next()).value) };
}

type Ask = (engine: number) => Promise<unknown>;

/** Microseconds per call, with one call out to each of `count` engines until each has had `calls`. */
async function slice(ask: Ask, count: number, calls: number): Promise<number> {
  const start = performance.now();
  const line = async (engine: number): Promise<void> => {
    for (let call = 0; call < calls; call++) await ask(engine);
  };
  await Promise.all(Array.from({ length: count }, (_, engine) => line(engine)));
  return ((performance.now() - start) * 1000) / (count * calls);
}

/** The median of single calls, one at a time, in microseconds. */
async function p50(ask: Ask, calls: number): Promise<number> {
  const times: number[] = [];
  for (let call = 0; call < calls; call++) {
    const start = performance.now();
    await ask(0);
    times.push((performance.now() - start) * 1000);
  }
  return median(times);
}

/** Measures `count` engines with one call out to each; with one engine, the median of single calls. */
export async function benchRelay(count: number, rounds = 40, calls = 60): Promise<RelayRow[]> {
  const bare = await bareFrontend(count);
  const relay = start("relay", String(count));
  const echo = start("echo");
  const { handshake = "" } = await relay.line();
  const replies = [probe, ...cases.map(({ reply }) => reply)].map((reply) => {
    const tag = reply === probe ? "IsSchedulerPausedReqInput" : reply.$tag.replace("Output", "Input");
    return `${tag}=${Buffer.from(encodeControlOutput(reply)).toString("hex")}`;
  });
  const engines = [handshake, bare.address].map((address) => spawnEngines(address, count, replies));
  try {
    await bare.accept();
    const { url = "" } = await relay.line();
    const connection = await connect(url, { WebSocket });
    const client = createClient(connection, { guard: false });
    const { url: echoUrl = "" } = await echo.line();
    const socket = new WebSocket(echoUrl);
    await once(socket, "open");
    const waiting: (() => void)[] = [];
    socket.on("message", () => waiting.shift()?.());
    const rows: RelayRow[] = [];
    for (const { name, request } of cases) {
      // an operation for all engines cannot go to one of several
      if (count > 1 && request.$tag !== "IsSleepingReqInput") continue;
      const payload = encodeControlRequest(request);
      const message = encodeCall({ id: 1, request: payload, engines: [0], timeoutMs: 60_000 });
      const contestants: readonly Ask[] = [
        (engine) => client.control(request, count > 1 ? { engines: [engine] } : {}),
        // one after the other, so that every process has slept as long as in a call through the relay
        async (engine) => {
          await new Promise<void>((resolve) => {
            waiting.push(resolve);
            socket.send(message);
          });
          await bare.ask(engine, payload);
        },
      ];
      const measure = (ask: Ask): Promise<number> => (count === 1 ? p50(ask, calls) : slice(ask, count, calls));
      for (const ask of contestants) await slice(ask, count, Math.ceil(4000 / count));
      const ratios: number[] = [];
      const sums: number[] = [];
      for (let round = 0; round < rounds; round++) {
        const times = [0, 0];
        for (const turn of [0, 1]) times[(turn + round) % 2] = await measure(contestants[(turn + round) % 2] as Ask);
        const [own = 0, sum = 0] = times;
        ratios.push(own / sum);
        sums.push(sum);
      }
      rows.push({ name, bytes: payload.length, sumMicroseconds: median(sums), ratio: median(ratios) });
    }
    await client.close();
    socket.close();
    return rows;
  } finally {
    bare.close();
    for (const child of [...engines, relay.child, echo.child]) child.kill("SIGKILL");
  }
}

/** 50th and 99th percentile of calls, in milliseconds, of `clients` clients with two calls out each. */
export async function benchRelayClients(
  clients = 200,
  calls = 50,
  count = 16,
): Promise<{ readonly p50: number; readonly p99: number; readonly perSecond: number }> {
  const relay = start("relay", String(count));
  const { handshake = "" } = await relay.line();
  const replies = [
    `IsSchedulerPausedReqInput=${Buffer.from(encodeControlOutput(probe)).toString("hex")}`,
    `IsSleepingReqInput=${Buffer.from(encodeControlOutput({ $tag: "IsSleepingReqOutput", isSleeping: false })).toString("hex")}`,
  ];
  const engines = spawnEngines(handshake, count, replies);
  try {
    const { url = "" } = await relay.line();
    const connections = await Promise.all(Array.from({ length: clients }, () => connect(url, { WebSocket, timeoutMs: 60_000 })));
    const times: number[] = [];
    const line = async (index: number): Promise<void> => {
      const connection = connections[index % clients];
      for (let call = 0; call < calls; call++) {
        const start = performance.now();
        await connection?.call({ $tag: "IsSleepingReqInput" }, { engines: [(index + call) % count] });
        times.push(performance.now() - start);
      }
    };
    const start2 = performance.now();
    await Promise.all(Array.from({ length: clients * 2 }, (_, index) => line(index)));
    const seconds = (performance.now() - start2) / 1000;
    await Promise.all(connections.map((connection) => connection.close()));
    times.sort((a, b) => a - b);
    const at = (part: number) => times[Math.floor(times.length * part)] ?? 0;
    return { p50: at(0.5), p99: at(0.99), perSecond: times.length / seconds };
  } finally {
    for (const child of [engines, relay.child]) child.kill("SIGKILL");
  }
}
