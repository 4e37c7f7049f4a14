import { quotedList } from "./texts.ts";

/** Every memory region in release order; resuming goes the other way. */
export const memoryRegions: readonly string[] = ["kv_cache", "weights", "cuda_graph", "nccl"];

/** Tags in the engine's order, or why they are refused. */
export type NormalTags = { readonly tags: readonly string[] } | { readonly refusal: string };

/** What of the device's memory is released, and what may be. */
export class Memory {
  readonly #available: readonly string[];
  readonly #released = new Set<string>();

  constructor(available: readonly string[]) {
    this.#available = available;
  }

  /** The released regions in release order. */
  get released(): readonly string[] {
    return memoryRegions.filter((tag) => this.#released.has(tag));
  }

  /** Whether anything is released. */
  get asleep(): boolean {
    return this.#released.size > 0;
  }

  /** Checks and orders the tags of a release; `null` is every region this engine can release. */
  toRelease(tags: readonly string[] | null): NormalTags {
    if (tags === null) return { tags: memoryRegions.filter((tag) => this.#available.includes(tag)) };
    return this.#normal(tags, memoryRegions);
  }

  /** Checks and orders the tags of a wake; `null` is exactly what is released. */
  toResume(tags: readonly string[] | null): NormalTags {
    const order = [...memoryRegions].reverse();
    const normal = tags === null ? { tags: order.filter((tag) => this.#released.has(tag)) } : this.#normal(tags, order);
    if ("refusal" in normal) return normal;
    const resident = normal.tags.filter((tag) => !this.#released.has(tag));
    return resident.length > 0 ? { refusal: `tags not released: ${quotedList(resident)}` } : normal;
  }

  /** Why a weight load cannot run: it writes the weights and may issue collectives. */
  loadRefusal(): string | undefined {
    const needed = ["weights", "nccl"].filter((tag) => this.#released.has(tag));
    if (needed.length === 0) return undefined;
    return `memory regions ${quotedList(needed)} are released; resume them with resume_memory_occupation before updating weights`;
  }

  /** Gives regions back. */
  release(tags: readonly string[]): void {
    for (const tag of tags) this.#released.add(tag);
  }

  /** Takes regions again. */
  resume(tags: readonly string[]): void {
    for (const tag of tags) this.#released.delete(tag);
  }

  #normal(tags: readonly string[], order: readonly string[]): NormalTags {
    const invalid = tags.filter((tag) => !memoryRegions.includes(tag));
    if (invalid.length > 0) return { refusal: `invalid tags: ${quotedList(invalid)}; valid: ${quotedList(memoryRegions)}` };
    const unavailable = tags.filter((tag) => !this.#available.includes(tag));
    if (unavailable.length > 0) {
      const available = memoryRegions.filter((tag) => this.#available.includes(tag));
      return {
        refusal: `tags not releasable on this engine: ${quotedList(unavailable)}; available: ${quotedList(available)}`,
      };
    }
    return { tags: order.filter((tag) => tags.includes(tag)) };
  }
}
