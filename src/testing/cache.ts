/** Tokens of a cache page, and the length prefixes are matched by. */
export const pageTokens = 16;

/** Pages a number of tokens takes. */
export function pagesOf(tokens: number): number {
  return Math.ceil(tokens / pageTokens);
}

/** The keys of the full pages in `tokens`: each stands for the page and everything before it, by a chained hash. */
function pageKeys(tokens: readonly number[]): string[] {
  const keys: string[] = [];
  let [one, two] = [0x811c9dc5, 0x9e3779b1];
  for (const [index, token] of tokens.entries()) {
    one = Math.imul(one ^ token, 0x01000193);
    two = Math.imul(two ^ token, 0x85ebca6b) ^ (two >>> 13);
    if ((index + 1) % pageTokens === 0) keys.push(`${one >>> 0}:${two >>> 0}`);
  }
  return keys;
}

/** Full pages of prompts and outputs that a later request may begin with, and their copies on the host. */
export class PrefixCache {
  readonly #capacity: number;
  readonly #host: { readonly ackMs: number } | undefined;
  /** In order of last use, oldest first. */
  readonly #pages = new Set<string>();
  readonly #onHost = new Set<string>();
  #copies: number[] = [];

  /** `capacity` in pages; `host` when a host cache stands behind the device's. */
  constructor(capacity: number, host: { readonly ackMs: number } | undefined) {
    this.#capacity = capacity;
    this.#host = host;
  }

  /** Tokens of a prompt that need not be computed: full pages, and never the last token. */
  match(prompt: readonly number[]): number {
    let matched = 0;
    for (const key of pageKeys(prompt.slice(0, -1))) {
      if (!this.#pages.delete(key)) break;
      this.#pages.add(key);
      matched += pageTokens;
    }
    return matched;
  }

  /** Keeps the full pages of a request that ended; with a host cache their copies begin at `now`. */
  keep(tokens: readonly number[], now: number): void {
    let copied = false;
    for (const key of pageKeys(tokens)) {
      this.#pages.delete(key);
      this.#pages.add(key);
      if (this.#host !== undefined && !this.#onHost.has(key)) {
        this.#onHost.add(key);
        copied = true;
      }
    }
    if (copied && this.#host !== undefined) this.#copies.push(now + this.#host.ackMs);
    for (const oldest of this.#pages) {
      if (this.#pages.size <= this.#capacity) break;
      this.#pages.delete(oldest);
    }
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
