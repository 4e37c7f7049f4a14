import type { Connection } from "../../src/index.ts";
import { positionOfToken } from "../../src/testing/index.ts";
import { isEngineWireError } from "../../src/wire/errors.ts";

/** Streams at a time. */
const readers = 16;
/** How long one may be held by pauses before it is given up. */
const patienceMs = 3000;

/** Keeps streams open beside the calls; some are left early. Counts what became of them. */
export class SoakStreams {
  opened = 0;
  ended = 0;
  tokens = 0;
  readonly endings = new Map<string, number>();
  readonly failures: string[] = [];
  readonly #connection: Connection;
  readonly #random: () => number;

  constructor(connection: Connection, random: () => number) {
    this.#connection = connection;
    this.#random = random;
  }

  /** Opens streams for so long, then waits until none is open. */
  async run(durationMs: number): Promise<void> {
    const end = performance.now() + durationMs;
    const work = async (): Promise<void> => {
      while (performance.now() < end) await this.#stream();
    };
    await Promise.all(Array.from({ length: readers }, work));
  }

  async #stream(): Promise<void> {
    const maxNewTokens = 1 + Math.floor(this.#random() * 60);
    // an engine's connection keeps the ids of aborted requests for minutes, which is not what a flat heap should show
    const leaveAfter = this.#random() < 0.01 ? Math.floor(this.#random() * maxNewTokens) : Number.POSITIVE_INFINITY;
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), patienceMs);
    const samplingParams = { maxNewTokens, ignoreEos: true };
    const stream = this.#connection.generate({ inputIds: [1 + (this.opened % 1000), 2, 3], samplingParams }, { signal: controller.signal });
    this.opened++;
    let next = 0;
    let ending = "left";
    try {
      for await (const { outputIds, finishReason } of stream) {
        for (const id of outputIds) if (positionOfToken(id) !== next++) this.failures.push(`${stream.rid}: token ${id} at ${next - 1}`);
        this.tokens += outputIds.length;
        if (finishReason !== null) ending = finishReason;
        else if (next > leaveAfter) break;
      }
      if (ending === "length" && next !== maxNewTokens) this.failures.push(`${stream.rid}: ${next} of ${maxNewTokens} tokens`);
      if (ending === "left" && leaveAfter === Number.POSITIVE_INFINITY) this.failures.push(`${stream.rid} ended without a reason`);
    } catch (error) {
      ending = isEngineWireError(error) ? error.code : String(error);
      if (ending !== "aborted" || !controller.signal.aborted) this.failures.push(`${stream.rid}: ${error}`);
    }
    clearTimeout(timer);
    this.ended++;
    this.endings.set(ending, (this.endings.get(ending) ?? 0) + 1);
  }
}
