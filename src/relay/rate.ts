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
    this.#left = Math.min(this.#most, this.#left + (now - this.#at) * this.#perMs);
    this.#at = now;
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }
}
