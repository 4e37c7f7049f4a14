import type { BatchTokenIDOutSlim } from "../messages.ts";
import type { EngineLoad } from "../transport/generation.ts";

/** What an engine last said about its load, and when. */
export class LoadReport {
  readonly #batch: Pick<BatchTokenIDOutSlim, "numRunning" | "numWaiting" | "kvActivePages" | "kvTotalPages">;
  /** When, in milliseconds of `performance.now()`. */
  readonly at = performance.now();

  constructor(batch: BatchTokenIDOutSlim) {
    const { numRunning, numWaiting, kvActivePages, kvTotalPages } = batch;
    this.#batch = { numRunning, numWaiting, kvActivePages, kvTotalPages };
  }

  /** The load with its age, given how many requests are in flight there. */
  load(inFlight: number): EngineLoad {
    const idle = inFlight === 0;
    return {
      running: idle ? 0 : this.#batch.numRunning,
      waiting: idle ? 0 : this.#batch.numWaiting,
      kvActivePages: idle ? 0 : this.#batch.kvActivePages,
      kvTotalPages: this.#batch.kvTotalPages,
      ageMs: performance.now() - this.at,
    };
  }
}
