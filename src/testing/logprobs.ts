/** Token ids are signed 32-bit integers on the wire. */
export const tokenIds = 2 ** 31;

/** What a request wants of logprobs besides those of its output. */
export interface LogprobsWanted {
  /** The first prompt position that is scored; the last one, which needs no score, stands for none. */
  readonly start: number;
  /** Alternatives of each scored token. */
  readonly top: number;
}

/** Alternatives, most likely first, of each of several tokens. */
export interface Alternatives<Row> {
  readonly values: readonly Row[];
  readonly ids: readonly Row[];
}

/** The logprobs of a row of an output batch. */
export interface RowLogprobs {
  /** One for each output token of the row. */
  readonly output: readonly number[];
  /** Alternatives to the output tokens, where asked for. */
  readonly outputTop: Alternatives<readonly number[]> | undefined;
  /** The prompt's, in the one row that carries them: `null` for the first token scored, which nothing stands before. */
  readonly input: PromptLogprobs | undefined;
}

/** Logprobs of a prompt from the first position that was asked for. */
export interface PromptLogprobs {
  readonly values: readonly (number | null)[];
  readonly ids: readonly number[];
  readonly top: Alternatives<readonly number[] | null> | undefined;
}

/** The logprob that a simulated engine gives a token of prompt or output: `-(1 + token % 1000) / 1000`. */
export function logprobOf(token: number): number {
  return -(1 + (token % 1000)) / 1000;
}

/**
 * The `count` most likely tokens where `token` stands, as ids and logprobs: `token` itself, then `token + 1` and so on,
 * each one less likely by 1.
 */
export function alternativesOf(token: number, count: number): { readonly ids: number[]; readonly values: number[] } {
  const ranks = Array.from({ length: count }, (_, rank) => rank);
  return { ids: ranks.map((rank) => (token + rank) % tokenIds), values: ranks.map((rank) => logprobOf(token) - rank) };
}

/** Alternatives to each of these tokens. */
export function alternativesOfEach(tokens: readonly number[], count: number): Alternatives<number[]> {
  const rows = tokens.map((token) => alternativesOf(token, count));
  return { values: rows.map(({ values }) => values), ids: rows.map(({ ids }) => ids) };
}

/** The logprobs of a prompt, as a request wants them. */
export function promptLogprobs(prompt: readonly number[], { start, top }: LogprobsWanted): PromptLogprobs {
  const ids = prompt.slice(start);
  const scored = prompt.slice(start + 1);
  const alternatives = top > 0 ? alternativesOfEach(scored, top) : undefined;
  return {
    values: [null, ...scored.map(logprobOf)],
    ids,
    top: alternatives && { values: [null, ...alternatives.values], ids: [null, ...alternatives.ids] },
  };
}
