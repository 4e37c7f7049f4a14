import type { Command } from "commander";
import { createClient } from "../client/create-client.ts";
import { PROFILE_START, PROFILE_STOP } from "../messages.ts";
import { bind } from "../node/listener.ts";
import type { EngineReply } from "../transport/connection.ts";
import { isEngineWireError } from "../wire/errors.ts";
import { DemoRequests } from "./demo-requests.ts";
import { startEngineProcess } from "./engine-process.ts";
import { printRequests } from "./print-requests.ts";
import { ReplyTable } from "./reply-table.ts";

/** What one bucket of a weight update holds; real trainers group parameters by size. */
const buckets = [
  { names: ["model.embed_tokens.weight", "model.norm.weight"], shapes: [[151_936, 2048], [2048]] },
  {
    names: ["model.layers.0.self_attn.qkv_proj.weight", "model.layers.0.self_attn.o_proj.weight"],
    shapes: [
      [2560, 2048],
      [2048, 2048],
    ],
  },
  {
    names: ["model.layers.0.mlp.gate_up_proj.weight", "model.layers.0.mlp.down_proj.weight"],
    shapes: [
      [12_288, 2048],
      [2048, 6144],
    ],
  },
];

/** Requests that generate at a time, and the tokens that each asks for. */
const atOnce = 12;
const maxNewTokens = 40;

/** Adds `enginewire demo`: one reinforcement-learning step on simulated engines. */
export function addDemoCommand(program: Command): void {
  program
    .command("demo")
    .description("run one reinforcement-learning step against two simulated engines over ZeroMQ")
    .option("--once", "run the step once and exit (what it does anyway)")
    .argument("[engine-flags...]", "after --: flags for the simulated engines, see `enginewire engine --help`")
    .action(async (engineFlags: string[]) => {
      process.exitCode = await runDemo(engineFlags);
    });
}

/** Runs the step and returns the exit code. */
async function runDemo(engineFlags: readonly string[]): Promise<number> {
  const listener = await bind({ handshake: "tcp://127.0.0.1:0", count: 2 });
  const flags = ["--handshake", listener.handshakeAddress, "--memory-saver", ...engineFlags];
  const engines = [0, 1].map((index) => startEngineProcess(["--index", String(index), ...flags]));
  const table = new ReplyTable();
  let step = "connect";
  try {
    const ended = Promise.race(engines.map(({ ended }) => ended));
    const connection = await Promise.race([listener.accept({ timeoutMs: 20_000 }), ended]);
    const client = createClient(connection);
    table.title(
      `Two simulated engines connected to ${listener.handshakeAddress}. One reinforcement-learning step, while ${atOnce} requests run:`,
    );
    const requests = new DemoRequests(connection, atOnce, maxNewTokens);

    async function run(name: string, replies: () => Promise<readonly EngineReply[]>): Promise<void> {
      step = name;
      table.add(name, await replies());
    }

    await run("is the scheduler paused?", () => client.isSchedulerPaused());
    await run("is memory released?", () => client.isSleeping());
    await run("read the internal state", () => client.getInternalState());
    await run("pause, letting requests finish", () => client.pauseScheduler({ mode: "wait" }));
    await run("join the trainer's group", () =>
      client.initWeightsUpdateGroup({ masterAddress: "127.0.0.1", masterPort: 29_500, rankOffset: 1, worldSize: 3 }),
    );
    for (const [index, { names, shapes }] of buckets.entries()) {
      const dtypeNames = names.map(() => "bfloat16");
      await run(`update weights, bucket ${index + 1} of ${buckets.length}`, () =>
        client.updateWeightsFromDistributed({ names, dtypeNames, shapes, flushCache: false, weightVersion: "step-1" }),
      );
    }
    await run("flush the prefix cache", () => client.flushCache());
    await run("resume", () => client.resumeScheduler());
    await run("start the profiler", () => client.profile({ kind: PROFILE_START, profileId: "step-1" }));
    await run("stop the profiler", () => client.profile({ kind: PROFILE_STOP }));
    await run("sleep: release all memory", () => client.releaseMemoryOccupation());
    await run("is memory released?", () => client.isSleeping());
    await run("wake: restore all memory", () => client.resumeMemoryOccupation());
    await run("is the scheduler paused?", () => client.isSchedulerPaused());
    step = "the requests that still run";
    const report = await requests.stop();
    await client.close("the step is done");
    table.print();
    printRequests(report);
    return report.lost === 0 ? 0 : 1;
  } catch (error) {
    table.print();
    process.stderr.write(`failed at "${step}": ${isEngineWireError(error) ? error.message : String((error as Error).stack)}\n`);
    return 1;
  } finally {
    await listener.close();
    await Promise.all(engines.map((engine) => engine.stop()));
  }
}
