import { Prefix, pageTokens } from "./prefix.ts";

/**
 * What a later request may begin with, and its copies on the host: full pages, and of a request that ended also the
 * tokens behind its last full page, which match only as a whole.
 */
export class PrefixCache {
  readonly #capacity: number;
  readonly #host: { readonly ackMs: number } | undefined;
  /** Keys in order of last use, oldest first. */
  readonly #pages = new Set<number>();
  readonly #onHost = new Set<number>();
  #copies: number[] = [];

  /** `capacity` in pages; `host` when a host cache stands behind the device's. */
  constructor(capacity: number, host: { readonly ackMs: number } | undefined) {
    this.#capacity = capacity;
    this.#host = host;
  }

  /** Tokens of a prompt that need not be computed, `most` at most; never its last one. */
  match(prompt: readonly number[], most = Number.POSITIVE_INFINITY): number {
    const end = Math.min(prompt.length - 1, most);
    const prefix = new Prefix();
    let matched = 0;
    let tails: number[] = [];
    for (let at = 0; at < end; at += 1) {
      prefix.append(prompt[at] ?? 0);
      tails.push(prefix.key);
      if (tails.length < pageTokens) continue;
      if (!this.#use(prefix.key)) break;
      matched += pageTokens;
      tails = [];
    }
    for (let tail = Math.min(tails.length, pageTokens - 1); tail > 0; tail -= 1) {
      if (this.#use(tails[tail - 1])) return matched + tail;
    }
    return matched;
  }

  /** Shares the full pages of a request that runs, from the page `from` on. */
  share(prefix: Prefix, from: number): void {
    this.#add(prefix.pages.slice(from));
  }

  /** Keeps all tokens of a request that ended; with a host cache their copy begins now. */
  keep(prefix: Prefix, now: number): void {
    const keys = prefix.length % pageTokens > 0 ? [...prefix.pages, prefix.key] : prefix.pages;
    this.#add(keys);
    if (this.#host === undefined || keys.every((key) => this.#onHost.has(key))) return;
    for (const key of keys) this.#onHost.add(key);
    this.#copies.push(now + this.#host.ackMs);
  }

  #add(keys: readonly number[]): void {
    for (const key of keys) {
      this.#pages.delete(key);
      this.#pages.add(key);
    }
    if (this.#pages.size <= this.#capacity) return;
    for (const oldest of this.#pages) {
      if (this.#pages.size <= this.#capacity) break;
      this.#pages.delete(oldest);
    }
  }

  #use(key: number | undefined): boolean {
    if (key === undefined || !this.#pages.delete(key)) return false;
    this.#pages.add(key);
    return true;
  }

  /** Forgets everything on the device, and on the host unless told otherwise. */
  clear(device: "device" | "all" = "all"): void {
    this.#pages.clear();
    if (device === "all") this.#onHost.clear();
  }

  /** When the last copy to the host lands, or `undefined` when none is under way at `now`. */
  copying(now: number): number | undefined {
    this.#copies = this.#copies.filter((lands) => lands > now);
    return this.#copies.length > 0 ? Math.max(...this.#copies) : undefined;
  }
}
