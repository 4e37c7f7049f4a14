/** Listens once on each signal, however many calls share it: Node takes the eleventh listener of a signal for a leak. */
export class AbortListeners {
  readonly #signals = new Map<AbortSignal, { readonly calls: Set<() => void>; readonly heard: () => void }>();

  /** Calls `aborted` when the signal aborts; the result takes it back. No listener is left on a signal that nobody waits for. */
  add(signal: AbortSignal, aborted: () => void): () => void {
    let shared = this.#signals.get(signal);
    if (shared === undefined) {
      const calls = new Set<() => void>();
      const heard = (): void => {
        for (const call of [...calls]) call();
      };
      shared = { calls, heard };
      this.#signals.set(signal, shared);
      signal.addEventListener("abort", heard);
    }
    const { calls, heard } = shared;
    // a function of this call alone, in case a caller gives the same one twice
    const call = (): void => aborted();
    calls.add(call);
    return () => {
      calls.delete(call);
      if (calls.size > 0 || this.#signals.get(signal)?.calls !== calls) return;
      this.#signals.delete(signal);
      signal.removeEventListener("abort", heard);
    };
  }
}
