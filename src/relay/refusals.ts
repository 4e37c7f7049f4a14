import { Rate } from "./rate.ts";

/** Lines in a second about clients that were not let in. */
const perSecond = 10;

/** Counts clients that were refused, and has so many of them written down: whoever can connect could fill a disk otherwise. */
export class Refusals {
  readonly #rate = new Rate(perSecond, performance.now());
  #untold = 0;

  /** How many were refused without a line since the last one that has one; `undefined` where this one gets none either. */
  next(): number | undefined {
    if (!this.#rate.take(performance.now())) {
      this.#untold++;
      return undefined;
    }
    const untold = this.#untold;
    this.#untold = 0;
    return untold;
  }
}
