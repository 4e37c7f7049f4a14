/** Counts what is open by address. */
export class AddressCount {
  readonly #counts = new Map<string, number>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** The function that gives the place back, or `undefined` where the address has all it may have. */
  enter(address: string): (() => void) | undefined {
    const count = this.#counts.get(address) ?? 0;
    if (count >= this.#most) return undefined;
    this.#counts.set(address, count + 1);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      const rest = (this.#counts.get(address) ?? 1) - 1;
      if (rest === 0) this.#counts.delete(address);
      else this.#counts.set(address, rest);
    };
  }
}

/** Whether an address is this machine's own. */
export function isLoopback(address: string): boolean {
  return /^(127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+|localhost)$/.test(address);
}
