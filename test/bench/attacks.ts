// What attacks on a relay do to a client that minds its own business, and to the relay's memory. Attacker, relay, engine and
// client are processes of their own.
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import WebSocket from "ws";
import { encodeControlOutput } from "../../src/messages.ts";
import { connect, type RelayConnection } from "../../src/web/index.ts";
import { spawnEngines } from "./round-trip.ts";

/** The ways of the attacker. */
const ways = [
  "malformed messages",
  "call flood",
  "guessed tokens",
  "foreign origins",
  "oversized messages",
  "connections half open",
  "slow readers",
] as const;

/** What one attack came to. */
export interface AttackRow {
  readonly way: string;
  readonly tried: number;
  /** Connections that the relay closed or refused. */
  readonly refused: number;
  /** Resident memory of the relay before and at its highest, in MiB. */
  readonly memoryBefore: number;
  readonly memoryMost: number;
  /** 99th percentile of the client's calls, in milliseconds, and times that of the quiet time before it. */
  readonly p99: number;
  readonly ratio: number;
  /** Whether all of the client's calls were answered. */
  readonly survived: boolean;
}

function start(program: string, ...args: string[]): { readonly child: ChildProcess; line(): Promise<Record<string, string>> } {
  const path = fileURLToPath(new URL(`${program}${extname(import.meta.url)}`, import.meta.url));
  const child = spawn(process.execPath, [...process.execArgv, path, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { child, line: async () => JSON.parse((await lines.next()).value) };
}

function residentMiB(pid: number | undefined): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
}

/** Calls, one every ten milliseconds or so, well below the limit, for some time; the 99th percentile in milliseconds. */
async function watch(connection: RelayConnection, forMs: number): Promise<{ readonly p99: number; readonly failed: number }> {
  const times: number[] = [];
  let failed = 0;
  const until = performance.now() + forMs;
  while (performance.now() < until) {
    const start = performance.now();
    await connection.call({ $tag: "IsSleepingReqInput" }, { timeoutMs: 10_000 }).then(
      () => times.push(performance.now() - start),
      () => failed++,
    );
    await new Promise((resolve) => setTimeout(resolve, 8));
  }
  times.sort((a, b) => a - b);
  return { p99: times[Math.floor(times.length * 0.99)] ?? 0, failed };
}

/** Attacks in each way, with a quiet time before each. */
export async function benchAttacks(forMs = 4000): Promise<AttackRow[]> {
  const relay = start("relay-process", "defended", "1");
  const { handshake = "" } = await relay.line();
  const replies = [
    `IsSchedulerPausedReqInput=${Buffer.from(encodeControlOutput({ $tag: "IsSchedulerPausedReqOutput", isPaused: false })).toString("hex")}`,
    `IsSleepingReqInput=${Buffer.from(encodeControlOutput({ $tag: "IsSleepingReqOutput", isSleeping: false })).toString("hex")}`,
  ];
  const engines = spawnEngines(handshake, 1, replies);
  try {
    const { url = "" } = await relay.line();
    const connection = await connect(url, { WebSocket, token: "client" });
    await watch(connection, 2000);
    const rows: AttackRow[] = [];
    for (const way of ways) {
      const quiet = await watch(connection, forMs);
      const memoryBefore = residentMiB(relay.child.pid);
      let memoryMost = memoryBefore;
      const sampling = setInterval(() => {
        memoryMost = Math.max(memoryMost, residentMiB(relay.child.pid));
      }, 50);
      const attacker = start("attacker", way, url);
      const { p99, failed } = await watch(connection, forMs);
      clearInterval(sampling);
      attacker.child.kill("SIGTERM");
      const { tried, refused } = await attacker.line();
      rows.push({
        way,
        tried: Number(tried),
        refused: Number(refused),
        memoryBefore,
        memoryMost,
        p99,
        ratio: p99 / quiet.p99,
        survived: failed === 0,
      });
    }
    await connection.close();
    return rows;
  } finally {
    for (const child of [engines, relay.child]) child.kill("SIGKILL");
  }
}
