/** Tokens of a cache page, and the length prefixes are matched by. */
export const pageTokens = 16;

/** Pages a number of tokens takes. */
export function pagesOf(tokens: number): number {
  return Math.ceil(tokens / pageTokens);
}

/** The keys of `tokens` after 1, 2, ... of them: each stands for everything up to there, by a chained hash. */
function prefixKeys(tokens: readonly number[]): string[] {
  let [one, two] = [0x811c9dc5, 0x9e3779b1];
  return tokens.map((token) => {
    one = Math.imul(one ^ token, 0x01000193);
    two = Math.imul(two ^ token, 0x85ebca6b) ^ (two >>> 13);
    return `${one >>> 0}:${two >>> 0}`;
  });
}

/**
 * What a later request may begin with, and its copies on the host: full pages, and of a request that ended also the
 * tokens behind its last full page, which match only as a whole.
 */
export class PrefixCache {
  readonly #capacity: number;
  readonly #host: { readonly ackMs: number } | undefined;
  /** Keys in order of last use, oldest first. */
  readonly #pages = new Set<string>();
  readonly #onHost = new Set<string>();
  #copies: number[] = [];

  /** `capacity` in pages; `host` when a host cache stands behind the device's. */
  constructor(capacity: number, host: { readonly ackMs: number } | undefined) {
    this.#capacity = capacity;
    this.#host = host;
  }

  /** Tokens of a prompt that need not be computed; never its last one. */
  match(prompt: readonly number[]): number {
    const keys = prefixKeys(prompt.slice(0, -1));
    let matched = 0;
    while (this.#use(keys[matched + pageTokens - 1])) matched += pageTokens;
    for (let tail = Math.min(pageTokens - 1, keys.length - matched); tail > 0; tail -= 1) {
      if (this.#use(keys[matched + tail - 1])) return matched + tail;
    }
    return matched;
  }

  /** Keeps the full pages of `tokens`, and of a request that `ended` the rest; with a host cache its copy begins then. */
  keep(tokens: readonly number[], ended: boolean, now: number): void {
    const keys = prefixKeys(tokens).filter((_, index) => (index + 1) % pageTokens === 0 || (ended && index === tokens.length - 1));
    for (const key of keys) {
      this.#pages.delete(key);
      this.#pages.add(key);
    }
    if (ended && this.#host !== undefined && keys.some((key) => !this.#onHost.has(key))) {
      for (const key of keys) this.#onHost.add(key);
      this.#copies.push(now + this.#host.ackMs);
    }
    for (const oldest of this.#pages) {
      if (this.#pages.size <= this.#capacity) break;
      this.#pages.delete(oldest);
    }
  }

  #use(key: string | undefined): boolean {
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
