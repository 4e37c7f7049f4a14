import { EngineWireError } from "../wire/errors.ts";
import type { OutputRow } from "./request.ts";

/**
 * What goes wrong with an output batch. `unequal-columns`: the column of prompt lengths lacks its last entry.
 * `unknown-rid`: one more row, for a request nobody made. `after-finish`: another batch follows, with the rows of requests
 * that this one ended once more; batches that end none do not count.
 */
export type BatchFault = "unequal-columns" | "unknown-rid" | "after-finish";

const batchFaults: readonly BatchFault[] = ["unequal-columns", "unknown-rid", "after-finish"];

/** Output batches that something is wrong with. */
export interface BatchRule {
  readonly fault: BatchFault;
  /** The one rank it happens on; absent means every rank. */
  readonly rank?: number;
  /** How many batches of each of its ranks; absent means all. */
  readonly times?: number;
}

/** The request id of a row for a request nobody made. */
const unknownRid = "nobody-asked";

/** An output batch as it is sent. */
export interface SentBatch {
  readonly rows: readonly OutputRow[];
  /** A column lacks its last entry. */
  readonly unequal: boolean;
}

/** Why a rule cannot be, or `undefined`. */
export function batchFaultRefusal(fault: string): string | undefined {
  return (batchFaults as readonly string[]).includes(fault) ? undefined : `a batch fault is one of ${batchFaults.join(", ")}`;
}

/** The batch rules that apply on one rank. */
export class RankBatchRules {
  readonly #rank: number;
  readonly #rules: { readonly fault: BatchFault; left: number }[] = [];

  constructor(rank: number) {
    this.#rank = rank;
  }

  /** Adds those rules that are for this rank. Throws `invalid_argument` for a fault there is not. */
  add(rules: readonly BatchRule[]): void {
    for (const { fault, rank, times = Number.POSITIVE_INFINITY } of rules) {
      const refusal = batchFaultRefusal(fault);
      if (refusal !== undefined) throw new EngineWireError("invalid_argument", `badBatch: ${refusal}`, { found: String(fault) });
      if (rank === undefined || rank === this.#rank) this.#rules.push({ fault, left: times });
    }
  }

  /** Counts a batch that `fault` could happen to and says whether it does. */
  meet(fault: BatchFault): boolean {
    const rule = this.#rules.find((rule) => rule.fault === fault && rule.left > 0);
    if (rule === undefined) return false;
    rule.left -= 1;
    return true;
  }
}

/** What is sent for a round's rows: one batch, unless something is made to go wrong; `told` hears of each fault. */
export function batchesOf(rows: readonly OutputRow[], rules: RankBatchRules, told: (fault: BatchFault) => void): SentBatch[] {
  const meets = (fault: BatchFault) => {
    const met = rules.meet(fault);
    if (met) told(fault);
    return met;
  };
  const [first] = rows;
  const all = first !== undefined && meets("unknown-rid") ? [...rows, { ...first, rid: unknownRid }] : rows;
  const batches: SentBatch[] = [{ rows: all, unequal: meets("unequal-columns") }];
  const ended = rows.filter(({ finish }) => finish !== null);
  if (ended.length > 0 && meets("after-finish")) batches.push({ rows: ended, unequal: false });
  return batches;
}
