import type { ControlOutputInit } from "../../generated/tokenspeed/types.ts";
import type { SentBatch } from "./batch-faults.ts";
import type { Queued } from "./controls.ts";
import type { Outcome } from "./device.ts";
import type { EngineMessage } from "./messages.ts";
import { operationOf } from "./operation-names.ts";
import { Rank, type RankSettings } from "./rank.ts";
import { commitDelayForwards, Rebalance } from "./rebalance.ts";
import { EngineFault } from "./stops.ts";
import { type DeviceRequest, gatedReply, isWeightLoad, requestedVersion, wantsFlush } from "./weight-operations.ts";

/** The load an output batch reports. */
export interface Load {
  readonly numRunning: number;
  readonly numWaiting: number;
  readonly kvActivePages: number;
  readonly kvTotalPages: number;
}

/** What a round wants done, in order, by whoever drives it. */
export type Effect =
  | { readonly kind: "wait"; readonly ms: number }
  | ({ readonly kind: "outputs"; readonly rank: number; readonly load: Load } & SentBatch)
  | {
      readonly kind: "reply";
      readonly rank: number;
      readonly reply: ControlOutputInit | Uint8Array;
      /** The call of the second dialect that it answers; absent for a frame that was put in a reply's place. */
      readonly callId?: number;
      readonly lateMs: number;
    }
  | { readonly kind: "refusal"; readonly rank: number; readonly callId: number; readonly message: string }
  | { readonly kind: "dropped"; readonly rank: number; readonly reply: ControlOutputInit };

/** What a group is made of. */
export interface GroupSettings extends RankSettings {
  readonly ranks: number;
  /** Milliseconds a forward takes. */
  readonly forwardMs: number;
  /** The expert rebalance is on. */
  readonly eplb: boolean;
}

const flushFailed =
  "cache flush failed; retry the update after in-flight Host cache ops drain and no request is suspended with a retraction image (retracted or restoring)";

/**
 * The engines of one attention-DP group as one loop, a round at a time, without sockets or clocks of its own: a round
 * takes what arrived and yields effects. A device that breaks throws `EngineFault`, one that vanishes `EngineCrash`.
 */
export class Group {
  readonly ranks: readonly Rank[];
  readonly #settings: GroupSettings;
  readonly #rebalance = new Rebalance();
  readonly #now: () => number;

  /** `now` gives milliseconds that only grow; `tell` hears of what happens inside. */
  constructor(
    settings: GroupSettings,
    now: () => number,
    tell: (rank: number, event: string, fields: Readonly<Record<string, unknown>>) => void,
  ) {
    this.#settings = settings;
    this.#now = now;
    this.ranks = Array.from(
      { length: settings.ranks },
      (_, rank) => new Rank(rank, settings, (event, fields) => tell(rank, event, fields)),
    );
  }

  /** Milliseconds until a round has something to do without new messages; 0 for at once, `undefined` for never. */
  get nextRoundMs(): number | undefined {
    const gateOpen = this.#rebalance.due || this.ranks.every(({ controls }) => controls.queue.length > 0);
    const working = this.ranks.some(({ controls, scheduler }) => scheduler.inFlight > 0 || (!controls.frozen && !scheduler.empty));
    if (gateOpen || working) return 0;
    const now = this.#now();
    const landings = this.ranks.flatMap(({ controls, scheduler }) =>
      controls.drain === undefined ? [] : (scheduler.cache.copying(now) ?? []),
    );
    return landings.length > 0 ? Math.max(Math.min(...landings) - now, 0) : undefined;
  }

  /** One round: `messages` by rank, in order of arrival. */
  *round(messages: readonly (readonly EngineMessage[])[]): Generator<Effect, void, void> {
    for (const rank of this.ranks) {
      rank.take(messages[rank.rank] ?? [], this.#now(), () => this.#rebalance.releaseRefusal);
      rank.applyPause();
    }
    yield* this.#together();
    yield* this.#gate();
    yield* this.#forward();
    for (const rank of this.ranks) {
      const rows = rank.takeOutputs();
      if (rows.length === 0) continue;
      const load = this.#loadOf(rank);
      for (const batch of rank.batches(rows)) yield { kind: "outputs", rank: rank.rank, ...batch, load };
    }
    for (const rank of this.ranks) rank.finishDrain(this.#now(), this.#rebalance.due);
    yield* this.#replies();
  }

  /** The ranks take their time side by side and meet again. */
  *#together(): Generator<Effect, void, void> {
    const ms = Math.max(...this.ranks.map(({ device }) => device.takeBusy()));
    if (ms > 0) yield { kind: "wait", ms };
  }

  /** Flushes, and the operation at the queues' heads once every rank holds one of the same kind; one per round. */
  *#gate(): Generator<Effect, void, void> {
    const heads = this.ranks.flatMap(({ controls }) => controls.queue[0] ?? []);
    const ready = heads.length === this.ranks.length ? heads : [];
    if (ready.some(({ request }) => request.$tag !== ready[0]?.request.$tag)) {
      throw new EngineFault(
        "control: attention-DP ranks hold different weight operations at their queue heads; the frontend must send every weight operation to every DP engine in the same order",
      );
    }
    const flushAsked = this.ranks.some(({ controls }) => controls.flushAsked);
    const wants = ready.map(({ request }) => wantsFlush(request));
    const unequal = wants.some((want) => want !== wants[0]);
    if (unequal && !flushAsked) this.#disagree();
    const flushed = flushAsked || wants[0] === true ? this.#flush() : true;
    for (const { controls } of this.ranks) controls.endFlushes(flushed);
    if (ready.length === 0) {
      if (this.#rebalance.due) this.#rebalance.step();
      return;
    }
    if (unequal && !flushed) this.#disagree();
    for (const rank of this.ranks) rank.controls.queue.shift();
    yield* this.#complete(ready, flushed);
  }

  *#complete(ready: readonly Queued[], flushed: boolean): Generator<Effect, void, void> {
    let begun: Outcome | undefined;
    const outcomes = ready.map(({ request }, index): Outcome | EngineFault => {
      if (request.$tag !== "RebalanceExpertsReqInput") return this.#outcome(request, this.#rankAt(index), flushed);
      // the ranks begin it together
      begun ??= this.#beginRebalance();
      return begun;
    });
    yield* this.#together();
    // a device that broke did so after its delay
    for (const outcome of outcomes) if (outcome instanceof EngineFault) throw outcome;
    const agreed = outcomes.every((outcome) => !(outcome instanceof EngineFault) && outcome.success);
    for (const [index, { request, callId }] of ready.entries()) {
      const outcome = outcomes[index];
      if (outcome === undefined || outcome instanceof EngineFault) continue;
      const { controls, device } = this.#rankAt(index);
      const alone = outcome.success && !agreed;
      const what = request.$tag === "RebalanceExpertsReqInput" ? "rebalance refused" : "weight update failed";
      const message = alone ? `${what} on another rank in the replica (${outcome.message})` : outcome.message;
      if (!agreed || !isWeightLoad(request)) {
        controls.reply(gatedReply(request, agreed, message), callId);
        continue;
      }
      const refusal = controls.commitVersion(request);
      if (refusal === undefined) device.weights.publish(requestedVersion(request) ?? device.weights.version);
      controls.reply(gatedReply(request, refusal === undefined, refusal ?? message), callId);
    }
  }

  /** What one rank says to an operation that every rank holds. */
  #outcome(request: DeviceRequest, { device }: Rank, flushed: boolean): Outcome | EngineFault {
    if (wantsFlush(request) && !flushed) return { success: false, message: flushFailed };
    try {
      return device.update(request);
    } catch (error) {
      if (error instanceof EngineFault) return error;
      throw error;
    }
  }

  #rankAt(index: number): Rank {
    const rank = this.ranks[index];
    if (rank === undefined) throw new RangeError(`there is no rank ${index}`);
    return rank;
  }

  #beginRebalance(): Outcome {
    if (!this.#settings.eplb) {
      return { success: false, message: "expert rebalancing needs the server to start with --enable-eplb" };
    }
    const { phase } = this.#rebalance;
    if (phase !== undefined) return { success: false, message: `an expert rebalance is already in progress (${phase})` };
    this.#rebalance.begin();
    return {
      success: true,
      message: `expert load snapshot taken; the placement commits after ${commitDelayForwards} forwards`,
    };
  }

  /** Drops the caches of every rank, or of none. */
  #flush(): boolean {
    const now = this.#now();
    const clearable = this.ranks.every(({ scheduler }) => scheduler.clearable(now));
    if (clearable) for (const { scheduler } of this.ranks) scheduler.cache.clear();
    return clearable;
  }

  /** The ranks went into different collectives, which ends them all. */
  #disagree(): never {
    throw new EngineFault("rank 1 reduced 4 values, this rank 1");
  }

  /** One forward of the group: a rank without a batch runs an idle one beside the others. */
  *#forward(): Generator<Effect, void, void> {
    const batches = this.ranks.map(({ controls, scheduler }) => (controls.frozen ? [] : scheduler.plan()));
    const any = batches.some((batch) => batch.length > 0);
    for (const [index, rank] of this.ranks.entries()) {
      const batch = batches[index] ?? [];
      if (batch.length > 0) rank.dispatch(batch);
      if (any && !rank.controls.memory.asleep) rank.device.forward(this.#settings.forwardMs);
    }
    yield* this.#together();
    for (const [index, rank] of this.ranks.entries()) rank.commit((batches[index] ?? []).length > 0 ? 1 : 0, this.#now());
    if (any) this.#rebalance.countForward();
  }

  /** The round's replies, each rank's in its own order and at its own pace. */
  *#replies(): Generator<Effect, void, void> {
    const timed: { at: number; effect: Exclude<Effect, { kind: "wait" }> }[] = [];
    for (const { rank, controls, device } of this.ranks) {
      let at = device.takeBusy();
      for (const answer of controls.takeAnswers()) {
        const { output: reply, callId } = answer;
        if (reply === undefined) {
          timed.push({ at, effect: { kind: "refusal", rank, callId: answer.callId, message: answer.refusal } });
          continue;
        }
        const twist = device.meet(operationOf(reply.$tag), "reply");
        at += device.takeBusy();
        if (twist?.kind === "drop") {
          timed.push({ at, effect: { kind: "dropped", rank, reply } });
          continue;
        }
        const sent = twist?.kind === "wrong" ? { reply: twist.reply } : { reply, ...(callId !== undefined && { callId }) };
        const effect = { kind: "reply", rank, ...sent, lateMs: twist?.kind === "late" ? twist.ms : 0 } as const;
        timed.push({ at, effect });
        if (twist?.kind === "twice") timed.push({ at, effect });
      }
    }
    timed.sort((a, b) => a.at - b.at);
    let elapsed = 0;
    for (const { at, effect } of timed) {
      if (at > elapsed) yield { kind: "wait", ms: at - elapsed };
      elapsed = Math.max(elapsed, at);
      yield effect;
    }
  }

  #loadOf({ numRunning, scheduler }: Rank): Load {
    return {
      numRunning,
      numWaiting: scheduler.numWaiting,
      kvActivePages: scheduler.activePages,
      kvTotalPages: this.#settings.kvPages,
    };
  }
}
