import type { Client, ClientCallOptions } from "../../src/index.ts";
import { isEngineWireError } from "../../src/wire/errors.ts";
import { pick } from "./operations.ts";

/** Calls that are under way at a time. */
const workers = 48;
const expected: readonly string[] = ["timeout", "aborted", "previous_call_pending", "refused"];

/** Makes random calls and counts what becomes of them. */
export class Soak {
  calls = 0;
  settled = 0;
  misattributed = 0;
  readonly endings = new Map<string, number>();
  readonly operations = new Map<string, number>();
  readonly failures: string[] = [];
  readonly #client: Client;
  readonly #random: () => number;
  // one that lives as long as the soak, as an application's own would
  readonly #shared = new AbortController();

  constructor(client: Client, random: () => number) {
    this.#client = client;
    this.#random = random;
  }

  /** Calls for so long, then waits until nothing is under way. */
  async run(durationMs: number): Promise<void> {
    const end = performance.now() + durationMs;
    const work = async (): Promise<void> => {
      while (performance.now() < end) await this.#call();
    };
    let over = false;
    const rest = Promise.all(Array.from({ length: workers }, work)).finally(() => {
      over = true;
    });
    // the last calls may wait for replies that are lost, which only later answers prove
    while (!over) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (performance.now() > end) await this.#client.control({ $tag: "IsSleepingReqInput" }, { timeoutMs: 1000 }).catch(() => {});
    }
    await rest;
  }

  /** Closes the client in the middle of calls. */
  async close(): Promise<void> {
    const last = Array.from({ length: workers }, () => this.#call());
    await this.#client.close();
    await Promise.all(last);
  }

  async #call(): Promise<void> {
    const call = pick(this.#random, String(this.calls++));
    let timer: NodeJS.Timeout | undefined;
    let ending = "ok";
    try {
      const { options, started } = this.#options(call.toAll === true);
      timer = started;
      const replies = await call.run(this.#client, options);
      if (call.own !== undefined && !replies.every(call.own)) {
        this.misattributed++;
        this.failures.push(`${call.name} ${JSON.stringify(replies)}`);
      }
      if (replies.length !== (options.engines?.length ?? 8)) this.failures.push(`${call.name} has ${replies.length} replies`);
    } catch (error) {
      ending = isEngineWireError(error) ? error.code : String(error);
      if (!expected.includes(ending) && ending !== "closed") this.failures.push(`${call.name}: ${error}`);
    }
    clearTimeout(timer);
    this.settled++;
    count(this.endings, ending);
    count(this.operations, call.name);
  }

  /** Some of the engines, with a short deadline, an early abort, or neither. */
  #options(toAll: boolean): { readonly options: ClientCallOptions; readonly started?: NodeJS.Timeout } {
    const random = this.#random;
    const guard = random() < 0.2;
    const engines = toAll || random() < 0.1 ? {} : { engines: some(random) };
    const dice = random();
    if (dice < 0.1) return { options: { ...engines, guard, timeoutMs: 1 + Math.floor(random() * 40) } };
    const timeoutMs = 1000;
    if (dice < 0.8) return { options: { ...engines, guard, timeoutMs, signal: this.#shared.signal } };
    const controller = new AbortController();
    const started = setTimeout(() => controller.abort(), random() * 20);
    return { options: { ...engines, guard, timeoutMs, signal: controller.signal }, started };
  }
}

function some(random: () => number): readonly number[] {
  const first = Math.floor(random() * 8);
  return random() < 0.7 ? [first] : [first, (first + 1 + Math.floor(random() * 7)) % 8];
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
