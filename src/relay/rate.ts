/** Lets so many through in a second, and as many in one burst. */
export class Rate {
  readonly #perMs: number;
  readonly #most: number;
  #left: number;
  #at: number;

  constructor(perSecond: number, now: number) {
    this.#perMs = perSecond / 1000;
    this.#most = perSecond;
    this.#left = perSecond;
    this.#at = now;
  }

  /** Takes one, if one is left. `now` in milliseconds of a clock that does not go back. */
  take(now: number): boolean {
    this.#refill(now);
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }

  /** Whether nothing was taken for so long that it is as new. */
  isFull(now: number): boolean {
    this.#refill(now);
    return this.#left === this.#most;
  }

  #refill(now: number): void {
    this.#left = Math.min(this.#most, this.#left + (now - this.#at) * this.#perMs);
    this.#at = now;
  }
}

/** Rates by who it is: one that connects again, or often, has no more than one that stays. */
export class Rates {
  readonly #perSecond: number;
  readonly #rates = new Map<string, Rate>();

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** Takes one of somebody's, if one is left. */
  take(who: string, now: number): boolean {
    let rate = this.#rates.get(who);
    if (rate === undefined) {
      rate = new Rate(this.#perSecond, now);
      this.#rates.set(who, rate);
    }
    return rate.take(now);
  }

  /** Forgets those that have nothing to remember. */
  forget(now: number): void {
    for (const [who, rate] of this.#rates) if (rate.isFull(now)) this.#rates.delete(who);
  }
}
