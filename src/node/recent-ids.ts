/**
 * Remembers ids for some time, without a timer and without a date for each: two sets, the older of which is dropped when
 * the younger has been filled for that time. An id is remembered for between one and two times as long.
 */
export class RecentIds {
  readonly #forMs: number;
  #younger = new Set<string>();
  #older = new Set<string>();
  #turnedAt: number;

  constructor(forMs: number, now: number) {
    this.#forMs = forMs;
    this.#turnedAt = now;
  }

  /** Adds an id; `now` in milliseconds. */
  add(id: string, now: number): void {
    this.#turn(now);
    this.#younger.add(id);
  }

  /** Whether an id was added not long ago. */
  has(id: string, now: number): boolean {
    this.#turn(now);
    return this.#younger.has(id) || this.#older.has(id);
  }

  #turn(now: number): void {
    const turns = Math.floor((now - this.#turnedAt) / this.#forMs);
    if (turns === 0) return;
    this.#turnedAt = now;
    this.#older = turns === 1 ? this.#younger : new Set();
    this.#younger = new Set();
  }
}
