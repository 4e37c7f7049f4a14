import { compare, type Difference } from "./compare.ts";
import { type Known, loadContract } from "./load.ts";
import type { Skipped } from "./read-python.ts";

/** Compares two sources that a person names; the further files belong to each that is Python. */
export async function compareNamed(
  before: string,
  after: string,
  also: readonly string[],
  known: Known,
): Promise<{ readonly difference: Difference; readonly skipped: readonly Skipped[] }> {
  const old = await loadContract(before, also, known);
  const now = await loadContract(after, also, known);
  return { difference: compare(old.contract, now.contract), skipped: [...old.skipped, ...now.skipped] };
}
