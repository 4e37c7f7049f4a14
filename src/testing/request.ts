/** Why a request ended, as `finish_reason_details` carries it. */
export type Finish =
  | { readonly type: "length"; readonly length: number }
  | { readonly type: "stop"; readonly matched: number }
  | { readonly type: "abort"; readonly message: string; readonly err_type: number; readonly status_code?: number };

/** `err_type` of an abort without a particular kind. */
const unknownError = 522;
/** Requests that do not stream are still flushed every this many tokens. */
const forcedInterval = 50;
/** The first token a request is given; the k-th after it is this plus k. */
export const firstToken = 1000;

/** What an ADD asks for once it was checked. */
export interface Admission {
  readonly rid: string;
  readonly prompt: readonly number[];
  readonly maxNewTokens: number;
  readonly stopTokenIds: readonly number[];
  readonly stream: boolean;
  readonly streamInterval: number | null;
}

/** A row of an output batch. */
export interface OutputRow {
  readonly rid: string;
  readonly outputIds: readonly number[];
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  readonly finish: Finish | null;
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
  /** Tokens that are known, all but those of forwards under way. */
  generated = 0;
  finish: Finish | null = null;
  /** It was aborted, and whether its client still waits for a final output. */
  aborted: "no" | "silently" | "notifying" = "no";
  #sent = 0;

  constructor(admission: Admission) {
    this.admission = admission;
  }

  /** The first `length` tokens of prompt and output. */
  tokens(length: number): number[] {
    const { prompt } = this.admission;
    return Array.from({ length }, (_, index) => prompt[index] ?? firstToken + index - prompt.length);
  }

  /** Ends it at its next token, or before it starts. */
  abort(notify: boolean): void {
    this.aborted = notify ? "notifying" : "silently";
    this.finish = abortFinish(notify ? "Aborted by pause" : "AbortReq from client");
  }

  /** A forward gave its next token. */
  advance(): void {
    const token = firstToken + this.generated;
    this.generated += 1;
    if (this.finish !== null) return;
    if (this.generated >= this.admission.maxNewTokens) this.finish = { type: "length", length: this.admission.maxNewTokens };
    else if (this.admission.stopTokenIds.includes(token)) this.finish = { type: "stop", matched: token };
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
    const outputIds = Array.from({ length: this.generated - this.#sent }, (_, index) => firstToken + this.#sent + index);
    this.#sent = this.generated;
    return {
      rid: this.admission.rid,
      outputIds,
      promptTokens: this.admission.prompt.length,
      completionTokens: this.generated,
      cachedTokens: this.cachedTokens,
      finish: this.finish,
    };
  }
}
