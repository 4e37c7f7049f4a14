/** Hands every value to every reader through a bounded queue each, so that a reader that stalls costs nothing but its own oldest values. */
export class EventStream<T> {
  readonly #readers = new Set<Reader<T>>();
  readonly #limit: number;
  readonly #dropped: (count: number) => T;
  #ended = false;

  /** `limit` is the length of each reader's queue; `dropped` makes the value that tells a reader how many it lost. */
  constructor(limit: number, dropped: (count: number) => T) {
    this.#limit = limit;
    this.#dropped = dropped;
  }

  /** Gives a value to all present readers. */
  emit(value: T): void {
    for (const reader of this.#readers) reader.push(value);
  }

  /** Lets readers finish what is queued and end. */
  end(): void {
    this.#ended = true;
    for (const reader of this.#readers) reader.end();
    this.#readers.clear();
  }

  /** A new reader of the values emitted from now on. */
  read(): AsyncIterableIterator<T> {
    const reader = new Reader<T>(this.#limit, this.#dropped, () => this.#readers.delete(reader));
    if (this.#ended) reader.end();
    else this.#readers.add(reader);
    return reader;
  }
}

class Reader<T> implements AsyncIterableIterator<T> {
  readonly #limit: number;
  readonly #dropped: (count: number) => T;
  readonly #leave: () => void;
  readonly #waiting: ((result: IteratorResult<T>) => void)[] = [];
  // a ring of `#limit` places: dropping the oldest must not move the others
  readonly #ring: T[] = [];
  #head = 0;
  #lost = 0;
  #ended = false;

  constructor(limit: number, dropped: (count: number) => T, leave: () => void) {
    this.#limit = limit;
    this.#dropped = dropped;
    this.#leave = leave;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  push(value: T): void {
    const waiting = this.#waiting.shift();
    if (waiting !== undefined) {
      waiting({ value, done: false });
    } else if (this.#ring.length < this.#limit) {
      this.#ring.push(value);
    } else {
      this.#ring[this.#head] = value;
      this.#head = (this.#head + 1) % this.#limit;
      this.#lost++;
    }
  }

  end(): void {
    this.#ended = true;
    for (const waiting of this.#waiting.splice(0)) waiting({ value: undefined, done: true });
  }

  async next(): Promise<IteratorResult<T>> {
    if (this.#lost > 0) {
      const value = this.#dropped(this.#lost);
      this.#lost = 0;
      // the ring is full here: turn it so that the oldest is first and can be shifted out
      this.#ring.push(...this.#ring.splice(0, this.#head));
      this.#head = 0;
      return { value, done: false };
    }
    const value = this.#ring.shift();
    if (value !== undefined) return { value, done: false };
    if (this.#ended) return { value: undefined, done: true };
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async return(): Promise<IteratorResult<T>> {
    this.#leave();
    this.#ring.length = 0;
    this.#lost = 0;
    this.end();
    return { value: undefined, done: true };
  }
}
