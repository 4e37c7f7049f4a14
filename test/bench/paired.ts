/**
 * Timing for a machine whose speed changes from second to second: in each round every contestant gets one short slice,
 * in random order, the ratio is taken inside the round, and the median of the rounds' ratios is the result.
 */

/** One thing to time. */
export interface Contestant {
  readonly name: string;
  /** Runs so many times and returns the nanoseconds each took. */
  readonly loop: (times: number) => number;
}

/** What came out for one contestant. */
export interface Result {
  readonly name: string;
  /** Median nanoseconds. */
  readonly nanoseconds: number;
  /** Median of reference time over own time: how many times as fast as the reference. */
  readonly ratio: number;
  /** 10th and 90th percentile of that. */
  readonly low: number;
  readonly high: number;
}

function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] as number;
}

/** The median. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? (sorted[middle] as number) : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

function shuffle<Item>(items: readonly Item[]): Item[] {
  const shuffled = [...items];
  for (let i = shuffled.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [shuffled[i], shuffled[j]] = [shuffled[j] as Item, shuffled[i] as Item];
  }
  return shuffled;
}

// Each contestant gets a loop of its own, compiled apart, so that one's types do not slow another.
const makeLoop = new Function(
  "run",
  "now",
  "sink",
  "let last; return (times) => { const start = now(); for (let i = 0; i < times; i++) last = run(); const spent = now() - start; sink.last = last; return (spent * 1e6) / times; }",
) as (run: () => unknown, now: () => number, sink: { last?: unknown }) => (times: number) => number;

/** Makes a contestant of a function. */
export function contestant(name: string, run: () => unknown): Contestant {
  return { name, loop: makeLoop(run, () => performance.now(), {}) };
}

function timesFor(loop: Contestant["loop"], sliceMs: number): number {
  for (let times = 1; ; times *= 2) {
    const spent = (loop(times) * times) / 1e6;
    if (spent > sliceMs / 2 || times > 1e8) return Math.max(1, Math.round((times * sliceMs) / spent));
  }
}

/** Times contestants against the first of them. */
export function runPaired(contestants: readonly Contestant[], rounds: number, sliceMs: number): Result[] {
  const times = new Map<Contestant, number>();
  for (let k = 0; k < 3; k++) for (const one of contestants) times.set(one, timesFor(one.loop, sliceMs));
  const spent = new Map<Contestant, number[]>(contestants.map((one) => [one, []]));
  for (let round = 0; round < rounds; round++) {
    for (const one of shuffle(contestants)) spent.get(one)?.push(one.loop(times.get(one) as number));
  }
  const reference = spent.get(contestants[0] as Contestant) as number[];
  return contestants.map((one) => {
    const own = spent.get(one) as number[];
    const ratios = own.map((nanoseconds, round) => (reference[round] as number) / nanoseconds);
    return { name: one.name, nanoseconds: median(own), ratio: median(ratios), low: quantile(ratios, 0.1), high: quantile(ratios, 0.9) };
  });
}
