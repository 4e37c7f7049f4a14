/** How long a connection must hold before the next loss counts as a first one, in milliseconds. */
const stableMs = 10_000;

/**
 * Delays between attempts, doubling from `firstMs` to `mostMs`, each anywhere between nothing and that: clients that lost
 * one relay at the same instant must not come back at the same instant.
 */
export class Backoff {
  readonly #firstMs: number;
  readonly #mostMs: number;
  #failures = 0;
  #openedAt = 0;

  constructor(firstMs: number, mostMs: number) {
    this.#firstMs = firstMs;
    this.#mostMs = mostMs;
  }

  /** Notes that a connection is open. */
  opened(): void {
    this.#openedAt = performance.now();
  }

  /** The next delay, in milliseconds. */
  next(): number {
    if (this.#openedAt > 0 && performance.now() - this.#openedAt > stableMs) this.#failures = 0;
    this.#openedAt = 0;
    return Math.random() * Math.min(this.#mostMs, this.#firstMs * 2 ** this.#failures++);
  }
}
