// Output on its way to streams. Dispatch: a batch of 256 rows to as many loops that wait, beside decoding it; and the turns
// of those loops, which are the platform's. Throughput: batches from another process through real sockets.
import { type ChildProcess, spawn } from "node:child_process";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { EngineCoreReadyResponse } from "../../src/messages.ts";
import { decodeBatchTokenIDOutSlim, decodeEngineCoreReadyResponse, encodeEngineCoreReadyResponse } from "../../src/messages.ts";
import { EngineTable } from "../../src/node/engine-table.ts";
import { Generations } from "../../src/node/generations.ts";
import { bind } from "../../src/node/index.ts";
import { AbortListeners } from "../../src/transport/abort-listeners.ts";
import type { OutputStream } from "../../src/transport/generation.ts";
import { outputBatch, requestIds } from "./output-batch.ts";
import { median } from "./paired.ts";

const rows = 256;
const request = { inputIds: [1, 2, 3], samplingParams: {} };

/** What dispatching costs. */
export interface DispatchResult {
  readonly bytes: number;
  readonly decodeMicroseconds: number;
  /** Time to hand all rows to their streams, decoding taken off, over that of decoding: median of the rounds. */
  readonly ratio: number;
  /** The same until the last loop has had its turn. */
  readonly withTurns: number;
}

/** Measures `rounds` pairs of slices of `batches` batches each. */
export async function benchDispatch(rounds = 200, batches = 40): Promise<DispatchResult> {
  const registration: EngineCoreReadyResponse = decodeEngineCoreReadyResponse(encodeEngineCoreReadyResponse({}));
  const engines = new EngineTable(new Map([[0, { registration, dialect: "tagged" }]]), undefined);
  const generations = new Generations(engines, "round-robin", new AbortListeners(), {
    send: (_, frames, failed) => ({ frames: [...frames], failed, state: "sent" }),
    refused: (_, error) => error as never,
    report: () => {},
  });
  let turns = 0;
  const streams = requestIds(rows).map((rid) => generations.start({ ...request, rid }, {}));
  for (const stream of streams) void consume(stream, () => turns++);
  const frame = outputBatch(requestIds(rows));
  const decodeTimes: number[] = [];
  const ratios: number[] = [];
  const wholeRatios: number[] = [];
  for (let round = -50; round < rounds; round++) {
    const decode = slice(batches, () => void decodeBatchTokenIDOutSlim(frame));
    let received = 0;
    const start = performance.now();
    for (let batch = 0; batch < batches; batch++) {
      turns = 0;
      const before = performance.now();
      generations.receive(0, frame);
      received += performance.now() - before;
      while (turns < rows) await undefined;
    }
    const whole = ((performance.now() - start) * 1000) / batches;
    if (round < 0) continue;
    decodeTimes.push(decode);
    ratios.push(((received * 1000) / batches - decode) / decode);
    wholeRatios.push((whole - decode) / decode);
  }
  return { bytes: frame.length, decodeMicroseconds: median(decodeTimes), ratio: median(ratios), withTurns: median(wholeRatios) };
}

function slice(times: number, run: () => void): number {
  const start = performance.now();
  for (let time = 0; time < times; time++) run();
  return ((performance.now() - start) * 1000) / times;
}

async function consume(stream: OutputStream, turn: (tokens: number) => void): Promise<void> {
  for await (const { outputIds } of stream) turn(outputIds.length);
}

/** Tokens per second through one process that reads them as 256 streams: median of the runs. */
export async function benchThroughput(runs = 5, batches = 4000): Promise<number> {
  const results: number[] = [];
  for (let run = 0; run < runs; run++) results.push(await throughput(batches));
  return median(results);
}

async function throughput(batches: number): Promise<number> {
  const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: 1 });
  const child = spawnEngine(listener.handshakeAddress, batches);
  try {
    const connection = await listener.accept({ timeoutMs: 20_000 });
    let tokens = 0;
    let start = 0;
    const count = (received: number): void => {
      if (start === 0) start = performance.now();
      tokens += received;
    };
    const streams = requestIds(rows).map((rid) => connection.generate({ ...request, rid }, { bufferedTokens: 100_000 }));
    await Promise.all(streams.map((stream) => consume(stream, count)));
    return (tokens / (performance.now() - start)) * 1000;
  } finally {
    await listener.close();
    child.kill("SIGKILL");
  }
}

function spawnEngine(address: string, batches: number): ChildProcess {
  const program = fileURLToPath(new URL(`batch-engine${extname(import.meta.url)}`, import.meta.url));
  return spawn(process.execPath, [...process.execArgv, program, address, String(rows), String(batches)], {
    stdio: ["ignore", "ignore", "inherit"],
  });
}
