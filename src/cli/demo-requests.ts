import { positionOfToken, weightsOfToken } from "../testing/tokens.ts";
import type { Connection } from "../transport/connection.ts";

/** Tokens that requests were given by one state of the weights. */
export interface ServedTokens {
  /** Bucket loads that had been applied to them. */
  readonly loads: number;
  readonly tokens: number;
  /** Requests that had any of them. */
  readonly requests: number;
}

/** What became of the requests. */
export interface RequestsReport {
  readonly sent: number;
  /** Those that got every token they asked for, in order. */
  readonly whole: number;
  readonly tokens: number;
  /** Tokens that did not come, or not where they belong. */
  readonly lost: number;
  /** By weights, oldest first. */
  readonly served: readonly ServedTokens[];
}

/** Keeps so many requests running, one behind the other, until it is told to stop; counts what they were given. */
export class DemoRequests {
  readonly #connection: Connection;
  readonly #maxNewTokens: number;
  readonly #loops: readonly Promise<void>[];
  readonly #served = new Map<number, { tokens: number; requests: number }>();
  #sent = 0;
  #whole = 0;
  #tokens = 0;
  #lost = 0;
  #stopped = false;

  constructor(connection: Connection, atOnce: number, maxNewTokens: number) {
    this.#connection = connection;
    this.#maxNewTokens = maxNewTokens;
    this.#loops = Array.from({ length: atOnce }, (_, index) => this.#run(index));
    // whoever stops them hears of a failure
    for (const loop of this.#loops) loop.catch(() => {});
  }

  /** What became of them so far. */
  get report(): RequestsReport {
    const served = [...this.#served].sort(([a], [b]) => a - b).map(([loads, counts]) => ({ loads, ...counts }));
    return { sent: this.#sent, whole: this.#whole, tokens: this.#tokens, lost: this.#lost, served };
  }

  /** Sends no more, waits for those that run, and reports. */
  async stop(): Promise<RequestsReport> {
    this.#stopped = true;
    await Promise.all(this.#loops);
    return this.report;
  }

  async #run(loop: number): Promise<void> {
    // a prompt of its own: what another has computed would come from the prefix cache
    for (let round = 0; !this.#stopped; round++) await this.#request([loop, round, 2, 3, 5, 7]);
  }

  async #request(inputIds: readonly number[]): Promise<void> {
    const maxNewTokens = this.#maxNewTokens;
    const seen = new Set<number>();
    let next = 0;
    let wrong = 0;
    this.#sent++;
    for await (const { outputIds } of this.#connection.generate({ inputIds, samplingParams: { maxNewTokens, ignoreEos: true } })) {
      for (const id of outputIds) {
        if (positionOfToken(id) !== next++) wrong++;
        this.#count(weightsOfToken(id), seen);
      }
    }
    const lost = wrong + Math.abs(maxNewTokens - next);
    this.#lost += lost;
    if (lost === 0) this.#whole++;
  }

  #count(loads: number, seen: Set<number>): void {
    const counts = this.#served.get(loads) ?? { tokens: 0, requests: 0 };
    this.#served.set(loads, counts);
    counts.tokens++;
    this.#tokens++;
    if (seen.has(loads)) return;
    seen.add(loads);
    counts.requests++;
  }
}
