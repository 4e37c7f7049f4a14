import type { EngineWireError } from "../wire/errors.ts";

/**
 * A call under way. It is its own signal, with the members of one that are looked at: an `AbortController` for each call
 * costs more than decoding it, and the platform's garbage collector as much again.
 */
export class CallHandle {
  /** Whether it goes on without its client: what changes an engine is seen through and audited. */
  outlives = false;
  aborted = false;
  reason: unknown;
  /** When it arrived, in milliseconds of `performance.now()`. */
  readonly arrivedAt = performance.now();
  readonly #listeners: (() => void)[] = [];

  /** What the call is told to listen to. */
  get signal(): AbortSignal {
    return this as unknown as AbortSignal;
  }

  /** Gives the call up. */
  abort(reason: EngineWireError): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    for (const listener of [...this.#listeners]) listener();
  }

  addEventListener(_: "abort", listener: () => void): void {
    this.#listeners.push(listener);
  }

  removeEventListener(_: "abort", listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }
}
