import { PrefixCache } from "./cache.ts";
import { pagesOf, pageTokens } from "./prefix.ts";
import type { OutputRow, Request } from "./request.ts";
import { EngineCrash } from "./stops.ts";

/** A page counts as cached this many tokens after its last one: the overlap schedule's lag, as measured. */
const publicationLag = 3;

/** What scheduling depends on. */
export interface SchedulerSettings {
  /** Requests that run at a time. */
  readonly maxBatch: number;
  /** Tokens one forward computes at most, prompts and outputs together. */
  readonly maxBatchTokens: number;
  /** Pages of the device's cache. */
  readonly kvPages: number;
  /** A host cache behind the device's, with the time a copy to it takes. */
  readonly host: { readonly ackMs: number } | undefined;
}

/** One request's part of a forward. */
interface BatchRow {
  readonly request: Request;
  /** Prompt tokens it computes; 0 once the prompt is done. */
  readonly promptTokens: number;
  /** Whether it gives a token, which a prompt's chunk before its last does not. */
  readonly givesToken: boolean;
}

/** A forward's batch. */
export type Batch = readonly BatchRow[];

/** A forward whose tokens are not known yet. */
interface Flight {
  readonly batch: Batch;
  /** Loads applied to the weights it runs with, which may have changed by the time its tokens are known. */
  readonly updates: number;
}

/**
 * Which requests of a rank run in which forward. Forwards overlap with depth 1: a forward's tokens are known when the
 * next one has run, or at once when there is no next one. Kinder than the real scheduler in one respect, so that tests do
 * not depend on timing: a request's final output also lets go of its pages and its id, though a forward may still be under
 * way. There, for a moment, a flush is still refused and an ADD of the same id kills the process.
 */
export class Scheduler {
  readonly cache: PrefixCache;
  readonly #settings: SchedulerSettings;
  readonly #waiting: Request[] = [];
  #running: Request[] = [];
  readonly #inFlight: Flight[] = [];
  /** Ids of the requests it holds. */
  readonly #rids = new Set<string>();
  #activePages = 0;

  constructor(settings: SchedulerSettings) {
    this.#settings = settings;
    this.cache = new PrefixCache(settings.kvPages, settings.host);
  }

  /** Requests not yet in a batch. */
  get numWaiting(): number {
    return this.#waiting.length;
  }

  /** Whether it holds no request. */
  get empty(): boolean {
    return this.#waiting.length === 0 && this.#running.length === 0;
  }

  /** Forwards whose tokens are not known yet. */
  get inFlight(): number {
    return this.#inFlight.length;
  }

  /** Pages reserved for requests that run, or that ended with a forward still under way. */
  get activePages(): number {
    return this.#activePages;
  }

  /** Takes a request. What the real engine aborts on as a process crashes here. */
  submit(request: Request): void {
    const { rid, prompt } = request.admission;
    if (prompt.length === 0) throw new EngineCrash("ADD with an empty prompt");
    if (reserved(request) > this.#settings.kvPages) throw new EngineCrash("ADD that the whole cache cannot hold");
    if (this.#rids.has(rid)) throw new EngineCrash(`ADD with the request id of another that runs: ${rid}`);
    this.#rids.add(rid);
    this.#waiting.push(request);
  }

  /** The next forward's batch: outputs first, then prompts in order as far as the token budget goes. */
  plan(): Batch {
    this.#admit();
    let budget = this.#settings.maxBatchTokens;
    const rows: BatchRow[] = [];
    for (const request of this.#running) {
      if (request.computed < request.admission.prompt.length) continue;
      rows.push({ request, promptTokens: 0, givesToken: true });
      budget -= 1;
    }
    for (const request of this.#running) {
      const left = request.admission.prompt.length - request.computed;
      const promptTokens = Math.min(left, budget);
      if (promptTokens <= 0) continue;
      rows.push({ request, promptTokens, givesToken: promptTokens === left });
      budget -= promptTokens;
    }
    return rows;
  }

  /** A planned batch runs, with weights that `updates` loads were applied to. */
  dispatch(batch: Batch, updates: number): void {
    for (const { request, promptTokens } of batch) {
      request.computed += promptTokens;
      request.flights += 1;
    }
    this.#inFlight.push({ batch, updates });
  }

  /** Takes the results of all forwards but the newest `depth`; returns the outputs due and tells which requests ended. */
  commit(depth: number, now: number, ended: (request: Request) => void): OutputRow[] {
    const outputs: OutputRow[] = [];
    let anyEnded = false;
    for (const { batch, updates } of this.#inFlight.splice(0, Math.max(this.#inFlight.length - depth, 0))) {
      for (const { request, givesToken } of batch) {
        request.flights -= 1;
        // a forward may still be under way for a request that ended
        if (!request.running) this.#letGo(request);
        else if (givesToken) {
          request.advance(updates);
          this.#publish(request);
          if (request.due && request.aborted !== "silently") outputs.push(request.takeOutput());
          if (request.finish === null) continue;
          anyEnded = true;
          this.#end(request, now);
          ended(request);
        }
      }
    }
    if (anyEnded) this.#running = this.#running.filter(({ running }) => running);
    return outputs;
  }

  #end(request: Request, now: number): void {
    request.running = false;
    this.#rids.delete(request.admission.rid);
    // the last token was sampled but never computed
    this.cache.keep(request.prefix(request.admission.prompt.length + request.generated - 1), now);
    this.#letGo(request);
  }

  /** Gives back the pages of a request that ended, once no forward needs them. */
  #letGo(request: Request): void {
    if (request.flights === 0) this.#activePages -= reserved(request);
  }

  /** Whether the cache can be dropped: no running request holds a full page, and no copy to the host is under way. */
  clearable(now: number): boolean {
    return this.#running.every((request) => request.pages === 0) && this.cache.copying(now) === undefined;
  }

  /** Shares a running request's full pages, and holds them. */
  #publish(request: Request): void {
    const { prompt } = request.admission;
    const pages = Math.floor(Math.max(prompt.length, prompt.length + request.generated - publicationLag) / pageTokens);
    if (pages <= request.pages) return;
    this.cache.share(request.prefix(pages * pageTokens), request.pages);
    request.pages = pages;
  }

  #admit(): void {
    let admitted = 0;
    for (const next of this.#waiting) {
      if (this.#running.length >= this.#settings.maxBatch || this.#activePages + reserved(next) > this.#settings.kvPages) break;
      admitted += 1;
      next.cachedTokens = this.cache.match(next.admission.prompt, recomputedFrom(next));
      next.computed = next.cachedTokens;
      next.pages = Math.floor(next.cachedTokens / pageTokens);
      next.running = true;
      this.#running.push(next);
      this.#activePages += reserved(next);
    }
    this.#waiting.splice(0, admitted);
  }
}

/** Prompt tokens that may come from the cache: the positions that are scored have to be computed. */
function recomputedFrom({ admission }: Request): number {
  const { logprobs, prompt } = admission;
  return logprobs === undefined || logprobs.start >= prompt.length - 1 ? Number.POSITIVE_INFINITY : logprobs.start;
}

/** Pages a request is given as it starts: for its prompt and its whole budget. */
function reserved({ admission }: Request): number {
  return pagesOf(admission.prompt.length + Math.max(admission.maxNewTokens, 1));
}
