import { distinctWeights } from "./tokens.ts";

const count = 64;

/** FNV-1a over text, 32 bits. */
function hash(text: string, seed = 0x811c9dc5): number {
  let value = seed;
  for (let index = 0; index < text.length; index += 1) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value >>> 0;
}

/** A few numbers that stand for a model's weights: they change with each update and tell one history from another. */
export class VirtualWeights {
  readonly #values = new Uint32Array(count);
  /** How many updates the device has applied. */
  updates = 0;
  readonly #versions: (string | null)[] = [null];

  constructor(model: string) {
    this.#mix(model);
  }

  /** Rewrites the weights from a description of their source. */
  apply(source: string): void {
    this.#mix(source);
    const { version } = this;
    this.updates += 1;
    this.publish(version);
  }

  /** The label of the last update that succeeded on every rank; null before the first that named one. */
  get version(): string | null {
    return this.#versions[this.#at] ?? null;
  }

  /** Labels the weights as they are now. */
  publish(version: string | null): void {
    this.#versions[this.#at] = version;
  }

  /** The label of each weights there were, by the updates applied to them, modulo the weights that tokens can tell apart. */
  get versions(): readonly (string | null)[] {
    return [...this.#versions];
  }

  /** Eight hex digits: equal on two ranks exactly when they started from one model and applied the same updates in order. */
  get checksum(): string {
    let value = 0x811c9dc5;
    for (const weight of this.#values) value = Math.imul(value ^ weight, 0x01000193) ^ (weight >>> 15);
    return (value >>> 0).toString(16).padStart(8, "0");
  }

  get #at(): number {
    return this.updates % distinctWeights;
  }

  #mix(source: string): void {
    let state = hash(source) || 1;
    for (let index = 0; index < count; index += 1) {
      // xorshift32
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      this.#values[index] = Math.imul((this.#values[index] ?? 0) ^ state, 0x9e3779b1);
    }
  }
}
