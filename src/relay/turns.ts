/**
 * Lets one query of a kind of one client be under way at a time, the others behind it. Engines answer queries of a kind one by
 * one, in order: without this, a client with many of them would have another client's one wait behind them all.
 */
export class Turns {
  readonly #waiting = new Map<string, (() => void)[]>();

  /** Calls `start` when the kind is free: at once, or behind those before it. */
  enter(kind: string, start: () => void): void {
    const waiting = this.#waiting.get(kind);
    if (waiting === undefined) {
      this.#waiting.set(kind, []);
      start();
    } else waiting.push(start);
  }

  /** Ends the turn of a kind. */
  leave(kind: string): void {
    const next = this.#waiting.get(kind)?.shift();
    if (next === undefined) this.#waiting.delete(kind);
    else next();
  }
}
