import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Runs the command as a user would and returns what it printed and its exit code. */
export async function codegen(...args: string[]): Promise<{ readonly code: number; readonly output: string }> {
  try {
    const { stdout, stderr } = await run(process.execPath, ["--import", "tsx", "codegen/main.ts", ...args], {
      cwd: join(import.meta.dirname, "../.."),
    });
    return { code: 0, output: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, output: stdout + stderr };
  }
}
