import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const release = "tokenspeed-smg==1.13.0.post20261027";
const root = join(import.meta.dirname, "../..");
/** A model of a few hundred tokens: the gateway wants a tokenizer, and must not look for one on the net. */
const model = resolve(root, process.env.ENGINEWIRE_SHARED ?? "../shared", "peers/smg/model");
const venv = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "enginewire-peers/smg-venv");

/** Why the gateway cannot be run here, or `undefined`. */
export async function gatewayMissing(): Promise<string | undefined> {
  if (!existsSync(model)) return `its model is not at ${model}`;
  try {
    await run("python3", ["-c", "import ensurepip, venv"]);
  } catch {
    return "python3 with venv and pip is not installed";
  }
  return undefined;
}

/** Installs the gateway into the cache, once for all runs. */
async function install(): Promise<string> {
  const done = join(venv, `${release}.installed`);
  if (!existsSync(done)) {
    await mkdir(join(venv, ".."), { recursive: true });
    await run("python3", ["-m", "venv", "--clear", venv]);
    await run(join(venv, "bin/python"), ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", release]);
    await writeFile(done, "");
  }
  return join(venv, "bin/smg");
}

/** Polls until `look` gives something, or throws with what it last said. */
export async function until<T>(what: string, look: () => Promise<T | undefined> | T | undefined, withinMs = 60_000): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}

/** An HTTP answer. */
export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** A running gateway that waits for a group of engines. */
export class Gateway {
  /** Where its engines dial. */
  readonly handshake: string;
  readonly #url: string;
  readonly #child: ChildProcess;
  #said = "";
  #worker = "";

  private constructor(program: string, engines: number, [http = 0, metrics = 0, handshake = 0]: readonly number[]) {
    this.#url = `http://127.0.0.1:${http}`;
    this.handshake = `tcp://127.0.0.1:${handshake}`;
    const flags = {
      host: "127.0.0.1",
      port: http,
      "prometheus-host": "127.0.0.1",
      "prometheus-port": metrics,
      "worker-urls": this.handshake,
      backend: "tokenspeed",
      "model-path": model,
      policy: "passthrough",
      "health-check-interval-secs": 1,
      "zmq-engine-count": engines,
      "log-level": "warn",
    };
    const switches = ["--enable-rl", "--disable-load-monitoring", "--disable-retries", "--disable-circuit-breaker"];
    const args = ["launch", ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]), ...switches];
    this.#child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, HF_HUB_OFFLINE: "1" } });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (data) => {
        this.#said = `${this.#said}${data}`.slice(-4000);
      });
    }
    // also where the run ends without its hooks
    process.once("exit", () => this.#child.kill("SIGKILL"));
  }

  /** Starts one for this many engines of one group. */
  static async start(engines: number): Promise<Gateway> {
    const program = await install();
    return new Gateway(program, engines, await freePorts(3));
  }

  /** What it printed last. */
  get said(): string {
    return this.#said;
  }

  /** Waits until it has taken its engines for a worker; returns what it tells of that. The bind is made by a health probe. */
  async ready(): Promise<Record<string, unknown>> {
    const worker = await until("a worker is ready", async () => {
      if (this.#child.exitCode !== null) throw new Error(`the gateway ended: ${this.#said}`);
      const answer = await this.ask("GET", "/v1/rl/workers").catch(() => undefined);
      return (answer?.body.workers as Record<string, unknown>[] | undefined)?.find(({ health }) => health === "ready");
    });
    this.#worker = String(worker.id);
    return worker;
  }

  /** An HTTP request; `body` is sent as JSON where it is given. */
  async ask(method: "GET" | "POST", path: string, body?: unknown): Promise<Answer> {
    const init = body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
    const response = await fetch(`${this.#url}${path}`, { method, ...init, signal: AbortSignal.timeout(30_000) });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  /** A control operation on the worker: the status, and the engine's own body or the gateway's error. */
  async control(method: string, body?: unknown): Promise<Answer> {
    const { status, body: outer } = await this.ask("POST", `/v1/rl/workers/${this.#worker}/engine/${method}`, body);
    return { status, body: (outer.body ?? outer) as Record<string, unknown> };
  }

  /** Ends it. An orderly end takes it five seconds, and nothing here depends on one. */
  async stop(): Promise<void> {
    const ended = this.#child.exitCode === null && this.#child.signalCode === null ? once(this.#child, "exit") : undefined;
    this.#child.kill("SIGKILL");
    await ended;
  }
}
