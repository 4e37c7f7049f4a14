/** Tokens of a cache page, and the length prefixes are matched by. */
export const pageTokens = 16;

/** Pages a number of tokens takes. */
export function pagesOf(tokens: number): number {
  return Math.ceil(tokens / pageTokens);
}

/** A sequence of tokens that grows, known by a key for all of it and one for each of its beginnings that fills a page. */
export class Prefix {
  #one = 0x811c9dc5;
  #two = 0x9e3779b1;
  #length = 0;
  /** The keys after 16, 32, ... tokens. */
  readonly pages: number[] = [];

  get length(): number {
    return this.#length;
  }

  /** Stands for every token so far: two chained hashes, in as many bits as a number has. */
  get key(): number {
    return (this.#one >>> 0) * 0x200000 + (this.#two >>> 11);
  }

  append(token: number): void {
    this.#one = Math.imul(this.#one ^ token, 0x01000193);
    this.#two = Math.imul(this.#two ^ token, 0x85ebca6b) ^ (this.#two >>> 13);
    this.#length += 1;
    if (this.#length % pageTokens === 0) this.pages.push(this.key);
  }
}
