import { isIP } from "node:net";

/** Counts what is open by address. */
export class AddressCount {
  readonly #counts = new Map<string, number>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** The function that gives the place back, or `undefined` where the address has all it may have. */
  enter(address: string): (() => void) | undefined {
    const network = networkOf(address);
    const count = this.#counts.get(network) ?? 0;
    if (count >= this.#most) return undefined;
    this.#counts.set(network, count + 1);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      const rest = (this.#counts.get(network) ?? 1) - 1;
      if (rest === 0) this.#counts.delete(network);
      else this.#counts.set(network, rest);
    };
  }
}

/** What one customer of a network has: an IPv4 address, written in either way, or the first half of an IPv6 address. */
export function networkOf(address: string): string {
  const [, mapped] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? [];
  if (mapped !== undefined) return mapped;
  if (isIP(address) !== 6) return address;
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const last = tail === "" ? [] : tail.split(":");
    while (groups.length + last.length < 8) groups.push("0");
    groups.push(...last);
  }
  return groups.slice(0, 4).join(":");
}

/** Whether an address is this machine's own. */
export function isLoopback(address: string): boolean {
  return /^(127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+|localhost)$/.test(address);
}
