/** Something that ends at a moment unless it is taken back. */
export interface Deadline {
  /** In milliseconds of `performance.now()`. */
  readonly at: number;
  readonly expired: () => void;
}

/**
 * All deadlines of a connection on one timer, since a timer for each call would cost more than encoding it. The timer may
 * fire early for a deadline that was taken back; it then looks for the next one. It never keeps the process alive.
 */
export class Deadlines {
  readonly #pending = new Set<Deadline>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #firesAt = Number.POSITIVE_INFINITY;

  /** Calls `expired` after so many milliseconds; the result takes it back. */
  add(timeoutMs: number, expired: () => void): Deadline {
    const deadline = { at: performance.now() + timeoutMs, expired };
    this.#pending.add(deadline);
    if (deadline.at < this.#firesAt) this.#arm(deadline.at);
    return deadline;
  }

  /** Takes a deadline back. */
  remove(deadline: Deadline): void {
    this.#pending.delete(deadline);
  }

  /** Takes all back. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#pending.clear();
  }

  #arm(at: number): void {
    clearTimeout(this.#timer);
    this.#firesAt = at;
    this.#timer = setTimeout(() => this.#fire(), Math.max(1, Math.ceil(at - performance.now())));
    // a number in browsers, an object that can be told so in Node
    (this.#timer as { unref?: () => void }).unref?.();
  }

  #fire(): void {
    this.#firesAt = Number.POSITIVE_INFINITY;
    const now = performance.now();
    let next = Number.POSITIVE_INFINITY;
    const due: Deadline[] = [];
    for (const deadline of this.#pending) {
      if (deadline.at <= now) due.push(deadline);
      else if (deadline.at < next) next = deadline.at;
    }
    if (next < Number.POSITIVE_INFINITY) this.#arm(next);
    for (const deadline of due) {
      if (this.#pending.delete(deadline)) deadline.expired();
    }
  }
}
