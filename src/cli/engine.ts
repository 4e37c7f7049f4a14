import type { Command } from "commander";
import { type EngineEvent, startEngine } from "../testing/index.ts";
import { addEngineFlags, type EngineFlags, engineHelp, engineOptionsOf } from "./engine-flags.ts";
import { lineOf } from "./engine-lines.ts";

/** How long the engine has to stop once asked. */
const graceMs = 3000;
/** The exit status of a process that aborted, which the engine is then said to have done. */
const aborted = 134;

/** Adds `enginewire engine`: a group of simulated engines as a process of its own, driven like the real engine's peer. */
export function addEngineCommand(program: Command): void {
  const command = program.command("engine").summary("run a simulated engine");
  command.description(
    "Runs a simulated TokenSpeed engine that dials a frontend over ZeroMQ: the whole control plane and generation, without a GPU.",
  );
  addEngineFlags(command).addHelpText("after", engineHelp);
  // bad flags exit with 2, as the real peer's
  command.exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));
  command.action(async (flags: EngineFlags) => {
    await run(flags, command);
  });
}

async function run(flags: EngineFlags, command: Command): Promise<void> {
  const started = performance.now();
  const say = (event: string, fields: object = {}) => {
    const time = Math.round((performance.now() - started) * 1000) / 1000;
    process.stdout.write(`${JSON.stringify({ event, t_ms: time, ...fields })}\n`);
  };
  const exit = (reason: string, code: number) => {
    say("exit", { reason });
    process.exitCode = code;
    process.stdin.destroy();
    // the sentinels are on their way; what else could keep the process is not worth waiting for
    setTimeout(() => process.exit(code), 500).unref();
  };
  // whoever reads the lines may go first
  process.stdout.on("error", () => {});

  const stop = new AbortController();
  const stopped = new Promise<void>((resolve) => stop.signal.addEventListener("abort", () => resolve()));
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop.abort());
  if (flags.untilStdinCloses) {
    process.stdin.resume();
    for (const event of ["end", "close", "error"] as const) process.stdin.on(event, () => stop.abort());
  }

  const onEvent = (event: EngineEvent) => {
    if (event.event === "dropped") process.stderr.write(`rank ${event.rank}: dropping a malformed input message: ${event.reason}\n`);
    if ((event.event === "received" || event.event === "replied") && !flags.trace) return;
    if (event.event === "outputs" && !flags.traceOutputs) return;
    const line = lineOf(event);
    if (line !== undefined) say(line.event, line);
  };
  say("start", { pid: process.pid, ranks: flags.ranks, index: flags.index });
  try {
    const engine = await startEngine({ ...engineOptionsOf(flags), onEvent, signal: stop.signal });
    void stopped.then(() => {
      setTimeout(() => {
        say("exit", { reason: "forced" });
        process.exit(1);
      }, graceMs).unref();
      return engine.close();
    });
    const { reason } = await engine.closed;
    if (reason === "crashed") process.exit(aborted);
    exit(reason, reason === "error" ? 1 : 0);
  } catch (error) {
    if (stop.signal.aborted) return exit("asked", 0);
    const { code, message } = error as { code?: string; message: string };
    if (code === "invalid_argument") command.error(`error: ${message}`, { exitCode: 2 });
    say("error", { error: `handshake: ${message}` });
    exit("error", 1);
  }
}
