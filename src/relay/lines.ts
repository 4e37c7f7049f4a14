import { AbortListeners } from "../transport/abort-listeners.ts";
import { limit } from "../transport/timeouts.ts";

/** Calls of one kind that one client may have in front of the engines, where others wait behind them; a second one keeps engines busy. */
const most = 2;

interface Line {
  taken: number;
  readonly waiting: Set<() => void>;
}

/** Why a call got no turn. */
export interface NoTurn {
  readonly expired: boolean;
  readonly reason: unknown;
}

/**
 * Keeps clients apart whose calls meet in one line: engines answer calls of a kind one after the other, so whoever sent
 * many would stand before all others. Each client has a few there; its further calls wait here, and cost others nothing.
 */
export class Lines {
  readonly #lines = new Map<string, Line>();
  readonly #aborts = new AbortListeners();

  /** The function that ends a turn, at once or when one is free. Rejects with `NoTurn` when its time or signal ends first. */
  enter(key: string, timeoutMs: number, signal: AbortSignal): (() => void) | Promise<() => void> {
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = { taken: 0, waiting: new Set() };
      this.#lines.set(key, line);
    }
    const { waiting } = line;
    if (line.taken < most) return this.#take(key, line);
    return new Promise((resolve, reject) => {
      const admit = (): void => {
        stop();
        waiting.delete(admit);
        resolve(this.#take(key, line));
      };
      const leave = (why: NoTurn): void => {
        waiting.delete(admit);
        reject(why);
      };
      const stop = limit(
        timeoutMs,
        signal,
        { expired: () => leave({ expired: true, reason: undefined }), aborted: (reason) => leave({ expired: false, reason }) },
        this.#aborts,
      );
      waiting.add(admit);
    });
  }

  #take(key: string, line: Line): () => void {
    line.taken++;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      line.taken--;
      const next: (() => void) | undefined = line.waiting.values().next().value;
      if (next !== undefined) next();
      else if (line.taken === 0) this.#lines.delete(key);
    };
  }
}
