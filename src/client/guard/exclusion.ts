import { AbortListeners } from "../../transport/abort-listeners.ts";
import { limit } from "../../transport/timeouts.ts";

/** Why a call left the line without its turn. */
export type LeftLine = { readonly expired: true; readonly holder: string } | { readonly expired: false; readonly reason: unknown };

/**
 * Lets one state-changing call of a group of engines be under way at a time, the others in order behind it: whatever
 * changes admission, memory or weights would otherwise meet on the engines in different states.
 */
export class Exclusion {
  #holder: string | undefined;
  readonly #waiting: (() => void)[] = [];
  readonly #aborts = new AbortListeners();

  /** The function that ends this call's turn, when nothing is under way. */
  enterAtOnce(name: string): (() => void) | undefined {
    return this.#holder === undefined ? this.#turn(name) : undefined;
  }

  /**
   * Waits in line behind what is under way, and resolves with the function that ends this call's turn. Rejects with a
   * `LeftLine` when its time or signal ends first.
   */
  enterInLine(name: string, timeoutMs: number, signal: AbortSignal | undefined): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const admit = (): void => {
        stop();
        resolve(this.#turn(name));
      };
      const leave = (why: LeftLine): void => {
        this.#waiting.splice(this.#waiting.indexOf(admit), 1);
        reject(why);
      };
      const stop = limit(
        timeoutMs,
        signal,
        {
          expired: () => leave({ expired: true, holder: this.#holder ?? name }),
          aborted: (reason) => leave({ expired: false, reason }),
        },
        this.#aborts,
      );
      this.#waiting.push(admit);
    });
  }

  /** Says what is under way, if anything is. */
  tellHolder(tell: (holder: string) => void): void {
    if (this.#holder !== undefined) tell(this.#holder);
  }

  #turn(name: string): () => void {
    this.#holder = name;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#holder = undefined;
      this.#waiting.shift()?.();
    };
  }
}
