import type { TokenizedGenerateReqInputInit } from "../messages.ts";
import type { DynamicMap } from "../wire/index.ts";

/**
 * What to generate: the fields of `TokenizedGenerateReqInput`. `rid` may be left out, then the connection makes one; `stream`
 * is true unless said otherwise.
 */
export type GenerateRequest = Omit<TokenizedGenerateReqInputInit, "$tag" | "rid"> & {
  /** Unique on the connection, and not that of a request which ended just before. */
  readonly rid?: string | undefined;
};

/** What a request may say besides its fields. */
export interface GenerateOptions {
  /** Ends the stream with `aborted` when aborted, and the request on its engine. One that is aborted already sends nothing. */
  readonly signal?: AbortSignal | undefined;
  /** Index of the engine to use, in place of the connection's routing. */
  readonly engine?: number | undefined;
  /** Tokens that may wait for a slow reader before the stream fails with `slow_consumer`, 1 to 2^31-1. Default 16384. */
  readonly bufferedTokens?: number | undefined;
}

/** Tokens with their logarithmic probabilities, in two columns of one length. */
export interface TokenLogprobs<Logprob = number> {
  readonly tokenIds: readonly number[];
  /** Natural logarithms. */
  readonly logprobs: readonly Logprob[];
}

/** For each position the most likely tokens, best first, in two columns of one length; null where there are none. */
export interface TopLogprobs<None = never> {
  readonly tokenIds: readonly (readonly number[] | None)[];
  /** Natural logarithms. */
  readonly logprobs: readonly (readonly number[] | None)[];
}

/** What an engine says about a request at once. */
export interface OutputChunk {
  /** The tokens since the last chunk; may be empty. */
  readonly outputIds: readonly number[];
  /** Why it ended, `stop`, `length` or `abort`; null while it runs. The last chunk is the only one with a reason. */
  readonly finishReason: string | null;
  /** More on why, such as `{ type: "stop", matched: 2 }` or an abort's `message`. */
  readonly finishDetails: DynamicMap<string, unknown> | null;
  /** Tokens of the prompt. */
  readonly promptTokens: number;
  /** Tokens generated so far. */
  readonly completionTokens: number;
  /** Tokens of the prompt that came from the prefix cache. */
  readonly cachedTokens: number;
  /** Of `outputIds`; null where they were not asked for. */
  readonly outputTokenLogprobs: TokenLogprobs | null;
  /** Alternatives to each of `outputIds`; null where they were not asked for. */
  readonly outputTopLogprobs: TopLogprobs | null;
  /** Of the prompt, whose first token has none; null but for the chunk that brings them. */
  readonly inputTokenLogprobs: TokenLogprobs<number | null> | null;
  /** Alternatives to each token of the prompt; null but for the chunk that brings them. */
  readonly inputTopLogprobs: TopLogprobs<null> | null;
  /** Forwards that verified drafts so far; null from an engine that does not say. */
  readonly specVerifyCt: number | null;
  /** Share of drafted tokens that were accepted; null without speculation. */
  readonly acceptDraftTokens: number | null;
}

/**
 * The output of one request. It is sent when `generate` is called, and aborted on its engine when the reader leaves:
 * through `break`, `return()`, an aborted signal, or by dropping the stream. Reading throws `EngineWireError`: the codec's
 * codes, `invalid_argument` and `refused` for a request that must not leave, `duplicate_request_id`, `aborted`,
 * `slow_consumer`, `timeout` where an engine does not take it, `engine_dead`, `closed`, and `malformed` where output could not be
 * read.
 */
export interface OutputStream extends AsyncIterableIterator<OutputChunk, undefined, void>, AsyncDisposable {
  /** The request's id. */
  readonly rid: string;
  /** Index of the engine it went to; undefined where it went to none, and until a relay has said which. */
  readonly engine: number | undefined;
  /** Leaves the stream, and aborts the request if it still runs. */
  return(): Promise<IteratorResult<OutputChunk, undefined>>;
}

/** How busy an engine was when it last said so. */
export interface EngineLoad {
  /** Requests that ran. */
  readonly running: number;
  /** Requests that waited. */
  readonly waiting: number;
  /** Pages of its cache that were in use. */
  readonly kvActivePages: number;
  /** Pages of its cache. */
  readonly kvTotalPages: number;
  /**
   * Milliseconds since it said so. An engine says it with its output only, so the last report of one that has gone idle
   * says that it is busy: with nothing of ours in flight the first three numbers are 0 here, whatever it said.
   */
  readonly ageMs: number;
}

/** What a routing function may look at: an engine that is up. */
export interface RoutableEngine {
  /** Its index on the wire. */
  readonly index: number;
  /** Its rank within its data-parallel group. */
  readonly dataParallelRank: number;
  /** Requests of this connection that have not ended there. */
  readonly inFlight: number;
  /** Its last report; absent before the first. */
  readonly load?: EngineLoad;
}

/**
 * Which engine a request goes to. `round-robin`: each in turn. `least-in-flight`: the one with the fewest requests of this
 * connection. `minimum-cache-usage`: the one with the fewest cache pages in its last report, then the fewest in flight. `bootstrap-room`: for
 * disaggregated serving, the request's `bootstrapRoom` modulo the number of engines; every request needs a room. A
 * function returns an index out of those it was given. A request's `dataParallelRank` and the `engine` option come first.
 */
export type Routing =
  | "round-robin"
  | "least-in-flight"
  | "minimum-cache-usage"
  | "bootstrap-room"
  | ((request: GenerateRequest, engines: readonly RoutableEngine[]) => number);
