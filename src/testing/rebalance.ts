/** Forwards between a snapshot of the expert load and the commit of the new placement. */
export const commitDelayForwards = 3;
/** Steps of a commit that go through the gate: the commit itself and one chunk for each of two layers. */
const commitSteps = 3;

/** The expert rebalance of a group: a snapshot, some forwards, then a commit in steps through the gate. */
export class Rebalance {
  #forwardsLeft: number | undefined;
  #steps = 0;

  /** Where it stands, or `undefined` when none is in progress. */
  get phase(): "computing" | "applying" | undefined {
    if (this.#forwardsLeft === undefined) return undefined;
    // a commit that is due has not been taken by the gate yet
    return this.#steps > 0 && this.#steps < commitSteps ? "applying" : "computing";
  }

  /** Whether steps wait for the gate. */
  get due(): boolean {
    return this.#steps > 0;
  }

  /** Why a release cannot run, where a rebalance forbids it. */
  get releaseRefusal(): string | undefined {
    const { phase } = this;
    return phase && `an expert rebalance is in progress (${phase}); retry the release once it has been applied`;
  }

  /** Takes the snapshot. */
  begin(): void {
    this.#forwardsLeft = commitDelayForwards;
  }

  /** Counts a forward of the group. */
  countForward(): void {
    if (this.#forwardsLeft === undefined || this.#forwardsLeft === 0) return;
    this.#forwardsLeft -= 1;
    if (this.#forwardsLeft === 0) this.#steps = commitSteps;
  }

  /** The gate takes a step; after the last one the placement is in force. */
  step(): void {
    this.#steps -= 1;
    if (this.#steps === 0) this.#forwardsLeft = undefined;
  }
}
