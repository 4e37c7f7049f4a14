import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/** A simulated engine in a process of its own. */
export interface EngineProcess {
  /** Rejects when the process ends without being asked to. */
  readonly ended: Promise<never>;
  /** Stops it and waits until it is gone. */
  stop(): Promise<void>;
}

/** Starts `enginewire engine` with these flags, by the same program that runs now. */
export function startEngineProcess(flags: readonly string[]): EngineProcess {
  const program = process.argv[1] ?? "";
  // it ends with this process, however this one ends: its stdin closes then
  const args = [...process.execArgv, program, "engine", "--until-stdin-closes", ...flags];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "ignore", "inherit"] });
  let asked = false;
  const exit = exited(child);
  const ended = exit.then((how) => {
    if (asked) return new Promise<never>(() => {});
    throw new Error(`a simulated engine ended by itself (${how})`);
  });
  ended.catch(() => {});
  return {
    ended,
    async stop() {
      asked = true;
      child.stdin?.end();
      const timer = setTimeout(() => child.kill("SIGKILL"), 5000);
      await exit;
      clearTimeout(timer);
    },
  };
}

async function exited(child: ChildProcess): Promise<string> {
  try {
    const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
    return signal === null ? `exit code ${code}` : signal;
  } catch (error) {
    return (error as Error).message;
  }
}
