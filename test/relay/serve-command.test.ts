import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import WebSocket from "ws";
import { createClient } from "../../src/index.ts";
import { startEngine } from "../../src/testing/index.ts";
import { connect } from "../../src/web/index.ts";
import { failureOf } from "../faults/scripted-group.ts";

const program = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const token = "a-token-for-the-command";

/** `enginewire serve` as a process, with what it has said. */
class ServeProcess {
  readonly child: ChildProcessWithoutNullStreams;
  readonly lines: Record<string, unknown>[] = [];
  errors = "";
  #rest = "";

  constructor(...flags: string[]) {
    const command = ["--import", "tsx", program, "serve", "--handshake", "tcp://127.0.0.1:0", "--port", "0", ...flags];
    this.child = spawn(process.execPath, command, { cwd: fileURLToPath(new URL("../../", import.meta.url)) });
    onTestFinished(() => void this.child.kill("SIGKILL"));
    this.child.stdout.on("data", (bytes) => {
      const parts = `${this.#rest}${bytes}`.split("\n");
      this.#rest = parts.pop() ?? "";
      this.lines.push(...parts.map((line) => JSON.parse(line)));
    });
    this.child.stderr.on("data", (bytes) => {
      this.errors += bytes;
    });
  }

  async event(name: string): Promise<Record<string, unknown>> {
    await expect.poll(() => this.lines.some(({ event }) => event === name) || this.child.exitCode !== null, { timeout: 30_000 }).toBe(true);
    const found = this.lines.find(({ event }) => event === name);
    if (found === undefined) throw new Error(`no "${name}": ${this.errors}`);
    return found;
  }
}

it("serves engines, reads tokens and opens its log anew, and stops in order", async () => {
  const folder = mkdtempSync(join(tmpdir(), "enginewire-serve-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [tokens, audit] = [join(folder, "tokens.json"), join(folder, "audit.log")];
  const write = (...names: string[]) =>
    writeFileSync(
      tokens,
      JSON.stringify({ tokens: names.map((name) => ({ name, token: `${token}-${name}`, scopes: ["read", "memory", "metrics"] })) }),
    );
  write("first");
  const served = new ServeProcess("--count", "2", "--tokens", tokens, "--audit", audit, "--metrics", "--limit", "callsInFlight=8");
  const { handshake } = await served.event("bound");
  const engine = await startEngine({ handshake: String(handshake), ranks: 2 });
  onTestFinished(() => engine.close());
  const url = String((await served.event("serving")).url);
  const connection = await connect(url, { WebSocket, token: `${token}-first`, client: "the test" });
  onTestFinished(() => connection.close());
  const client = createClient(connection);
  await client.flushCache();

  write("second");
  served.child.kill("SIGHUP");
  expect((await connection.closed).error?.code).toBe("unauthenticated");
  const second = await connect(url, { WebSocket, token: `${token}-second` });
  onTestFinished(() => second.close());

  renameSync(audit, `${audit}.1`);
  served.child.kill("SIGUSR2");
  await expect.poll(() => existsSync(audit)).toBe(true);
  await createClient(second).flushCache();
  expect(readFileSync(audit, "utf8")).toContain('"who":"second"');
  expect(readFileSync(`${audit}.1`, "utf8")).toContain('"client":"the test"');
  const metrics = await fetch(`${url.replace("ws", "http")}metrics`, { headers: { authorization: `Bearer ${token}-second` } });
  expect(await metrics.text()).toContain("enginewire_relay_calls_total");

  served.child.kill("SIGTERM");
  const [code] = await once(served.child, "exit");
  expect({ code, last: served.lines.at(-1) }).toEqual({ code: 0, last: { event: "stopped" } });
  expect((await failureOf(createClient(second).isSleeping({}, { timeoutMs: 100 }))).code).toMatch(/unreachable|going_away/);
  expect(served.errors + JSON.stringify(served.lines) + readFileSync(audit, "utf8")).not.toContain(token);
});

it.each([
  [["--host", "0.0.0.0"], "can be reached from other machines"],
  [["--tls-cert", "/none"], "--tls-cert and --tls-key go together"],
  [["--tokens", "/none"], "cannot be read"],
])("does not serve with %j", async (flags, message) => {
  const served = new ServeProcess("--count", "1", ...flags);
  if (served.child.exitCode === null) await once(served.child, "exit");
  expect(served.child.exitCode).toBe(1);
  expect(served.errors).toContain(message);
  // before any engine could have dialled in
  expect(served.lines).toEqual([]);
});

it("stops while it waits for engines", async () => {
  const served = new ServeProcess("--count", "1");
  await served.event("bound");
  served.child.kill("SIGTERM");
  const [code] = await once(served.child, "exit");
  expect(code).toBe(0);
});
