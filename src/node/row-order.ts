import type { Generation } from "./generation.ts";

/**
 * Finds the requests of one engine's rows. Hashing an id costs as much as decoding its row, and an engine mostly sends
 * the same requests in the same order again, less those that have ended; so the row's request is guessed and its id compared.
 */
export class RowOrder {
  readonly #running: ReadonlyMap<string, Generation>;
  #last: Generation[] = [];
  #present: Generation[] = [];
  /** Where the next guess is. */
  #at = 0;

  constructor(running: ReadonlyMap<string, Generation>) {
    this.#running = running;
  }

  /** Begins a batch. */
  begin(): void {
    const last = this.#last;
    this.#last = this.#present;
    last.length = 0;
    this.#present = last;
    this.#at = 0;
  }

  /** The running request of the batch's next row. */
  find(rid: string): Generation | undefined {
    const last = this.#last;
    let at = this.#at;
    let found = last[at];
    // one may have ended in between
    if (found?.rid !== rid) found = last[++at];
    if (found?.rid !== rid || found.ended) {
      at = this.#at;
      found = this.#running.get(rid);
    }
    this.#at = at + 1;
    if (found !== undefined) this.#present.push(found);
    return found;
  }
}
