import { EngineWireError } from "../wire/errors.ts";

/** The first token of a request under the weights an engine starts with; the one at position k there is this plus k. */
const firstToken = 1000;
/** Token ids between one weights and the next, so positions wrap here. */
const tokensPerWeights = 100_000;
/** Weights that have tokens of their own, so that ids stay below 2^31, which is all the wire has room for. */
export const distinctWeights = 20_000;

/**
 * The token that every request is given at `position` (0 for its first) by weights that `updates` loads were applied to:
 * `1000 + 100000 * updates + position`, with positions modulo 100,000 and updates modulo 20,000. Prompts do not matter.
 */
export function tokenOf(updates: number, position: number): number {
  return firstToken + (updates % distinctWeights) * tokensPerWeights + (position % tokensPerWeights);
}

function sinceFirst(token: number): number {
  const since = token - firstToken;
  if (Number.isInteger(since) && since >= 0 && since < distinctWeights * tokensPerWeights) return since;
  throw new EngineWireError("invalid_argument", `a simulated engine gives no token ${token}`, { found: String(token) });
}

/**
 * How many loads had been applied to the weights that gave this token, modulo 20,000: `tokens.map(weightsOfToken)` shows
 * which weights served a request. Their label is `state().weights.versions[weightsOfToken(token)]`. Throws
 * `invalid_argument` for a token that no simulated engine gives.
 */
export function weightsOfToken(token: number): number {
  return Math.floor(sinceFirst(token) / tokensPerWeights);
}

/** Where in its request's output this token stands, 0 for the first, modulo 100,000. Throws as `weightsOfToken` does. */
export function positionOfToken(token: number): number {
  return sinceFirst(token) % tokensPerWeights;
}
