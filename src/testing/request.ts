import { alternativesOfEach, type LogprobsWanted, logprobOf, promptLogprobs, type RowLogprobs } from "./logprobs.ts";
import { Prefix } from "./prefix.ts";
import { tokenOf } from "./tokens.ts";

/** Why a request ended, as `finish_reason_details` carries it. */
export type Finish =
  | { readonly type: "length"; readonly length: number }
  | { readonly type: "stop"; readonly matched: number }
  | { readonly type: "abort"; readonly message: string; readonly err_type: number; readonly status_code?: number };

/** `err_type` of an abort without a particular kind. */
const unknownError = 522;
/** Requests that do not stream are still flushed every this many tokens. */
const forcedInterval = 50;
/** What an ADD asks for once it was checked. */
export interface Admission {
  readonly rid: string;
  readonly prompt: readonly number[];
  readonly maxNewTokens: number;
  /** Stop tokens among the first so many do not end it. */
  readonly minNewTokens: number;
  readonly stopTokenIds: readonly number[];
  readonly stream: boolean;
  readonly streamInterval: number | null;
  /** Absent when it asks for no logprobs. */
  readonly logprobs?: LogprobsWanted | undefined;
}

/** A row of an output batch. */
export interface OutputRow {
  readonly rid: string;
  readonly outputIds: readonly number[];
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  readonly finish: Finish | null;
  /** Absent when its request asked for none. */
  readonly logprobs?: RowLogprobs;
}

/** An abort without a particular kind. */
export function abortFinish(message: string, statusCode?: number): Finish {
  const abort = { type: "abort", message, err_type: unknownError } as const;
  return statusCode === undefined ? abort : { ...abort, status_code: statusCode };
}

/** One request, from its admission to its last output. */
export class Request {
  readonly admission: Admission;
  /** Prompt tokens computed so far, those from the cache included. */
  computed = 0;
  /** Prompt tokens that came from the prefix cache. */
  cachedTokens = 0;
  /** Full cache pages it holds. */
  pages = 0;
  /** Forwards under way that it is part of. */
  flights = 0;
  /** It is in a batch or between two. */
  running = false;
  finish: Finish | null = null;
  /** It was aborted, and whether its client still waits for a final output. */
  aborted: "no" | "silently" | "notifying" = "no";
  readonly #prefix = new Prefix();
  readonly #stopTokenIds: ReadonlySet<number>;
  readonly #output: number[] = [];
  #sent = 0;
  #promptScored = false;

  constructor(admission: Admission) {
    this.admission = admission;
    this.#stopTokenIds = new Set(admission.stopTokenIds);
  }

  /** Tokens that are known, all but those of forwards under way. */
  get generated(): number {
    return this.#output.length;
  }

  /** Its first `length` tokens of prompt and output; each time as many as before or more. */
  prefix(length: number): Prefix {
    const { prompt } = this.admission;
    for (let at = this.#prefix.length; at < length; at += 1) {
      this.#prefix.append((at < prompt.length ? prompt[at] : this.#output[at - prompt.length]) ?? 0);
    }
    return this.#prefix;
  }

  /** Ends it at its next token, or before it starts. */
  abort(notify: boolean): void {
    this.aborted = notify ? "notifying" : "silently";
    this.finish = abortFinish(notify ? "Aborted by pause" : "AbortReq from client");
  }

  /** A forward with weights that `updates` loads were applied to gave its next token. */
  advance(updates: number): void {
    const { maxNewTokens, minNewTokens, logprobs } = this.admission;
    const position = this.#output.length;
    const token = tokenOf(updates, position);
    this.#output.push(token);
    if (this.finish !== null) return;
    if (position > 0 && logprobs !== undefined && logprobs.top > 0) {
      // only a prompt's forward gives alternatives, and a request without a budget is admitted all the same
      this.finish = abortFinish("top-k logprobs are not computed for this step (decode steps return none)");
    } else if (this.#output.length >= maxNewTokens) this.finish = { type: "length", length: maxNewTokens };
    else if (position >= minNewTokens && this.#stopTokenIds.has(token)) this.finish = { type: "stop", matched: token };
  }

  /** Whether this step's output is due to the client. */
  get due(): boolean {
    if (this.finish !== null) return true;
    if (!this.admission.stream) return this.generated === 1 || this.generated % forcedInterval === 0;
    const interval = Math.max(this.admission.streamInterval ?? 1, 1);
    return interval > 1 ? this.generated % interval === 1 : true;
  }

  /** The output of everything generated since the last one. */
  takeOutput(): OutputRow {
    const outputIds = this.#output.slice(this.#sent);
    this.#sent = this.#output.length;
    const row: OutputRow = {
      rid: this.admission.rid,
      outputIds,
      promptTokens: this.admission.prompt.length,
      completionTokens: this.#output.length,
      cachedTokens: this.cachedTokens,
      finish: this.finish,
    };
    const { logprobs } = this.admission;
    return logprobs === undefined ? row : { ...row, logprobs: this.#score(outputIds, logprobs) };
  }

  #score(outputIds: readonly number[], wanted: LogprobsWanted): RowLogprobs {
    const scoresPrompt = !this.#promptScored && this.#output.length > 0;
    this.#promptScored ||= scoresPrompt;
    // the last of those there are, which are the first token's alone: so the real engine counts
    const alternatives = outputIds.length > 0 ? this.#output.slice(0, 1) : [];
    return {
      output: outputIds.map(logprobOf),
      outputTop: wanted.top > 0 ? alternativesOfEach(alternatives, wanted.top) : undefined,
      input: scoresPrompt ? promptLogprobs(this.admission.prompt, wanted) : undefined,
    };
  }
}
