import type { OperationName } from "../../../generated/tokenspeed/operations.ts";
import type { Condition } from "./conditions.ts";

/** An operation that is not sent while a condition holds on one of the engines it would go to. */
export interface GuardRule {
  /** The methods it concerns. */
  readonly operations: readonly OperationName[];
  /** Reads after "the engine". */
  readonly when: Condition;
  /** What the engine would do; reads after "because". */
  readonly because: string;
  /** What to do first, or instead. */
  readonly remedy: string;
}

const loads = ["updateWeightsFromDistributed", "updateWeightsFromMooncake", "updateWeightFromDisk"] as const;

/**
 * What is not legal in which state of an engine. It is data, so that it can be read, tested row by row and printed into
 * `docs/guide.md`. Facts: the behaviour of engine release 0.1.0 as measured, and upstream's reports on what went wrong.
 */
export const guardTable: readonly GuardRule[] = [
  {
    operations: ["pauseScheduler"],
    when: "has memory released",
    because: "the engine refuses it: its scheduler stands still already",
    remedy: "wake it with resumeMemoryOccupation, then pause",
  },
  {
    operations: ["pauseScheduler"],
    when: "drains a release",
    because: "the engine refuses a second drain",
    remedy: "await the release, or end it with resumeScheduler",
  },
  {
    operations: ["resumeScheduler"],
    when: "has memory released",
    because: "the engine refuses to schedule on memory that is not there",
    remedy: "call resumeMemoryOccupation, which also resumes",
  },
  {
    operations: ["releaseMemoryOccupation"],
    when: "drains a pause",
    because: "the engine refuses a second drain",
    remedy: "await the pause, or end it with resumeScheduler",
  },
  {
    operations: ["releaseMemoryOccupation"],
    when: "is frozen by keep",
    because: "the frozen requests can never drain",
    remedy: "resume first, or pause with wait or abort",
  },
  {
    operations: ["releaseMemoryOccupation"],
    when: "has memory released, and no tags are named",
    because: "the engine refuses to release a region twice",
    remedy: "name the regions that are still resident",
  },
  {
    operations: ["releaseMemoryOccupation"],
    when: "has a named region released",
    because: "the engine refuses to release a region twice",
    remedy: "name only regions that are resident",
  },
  {
    operations: ["resumeMemoryOccupation"],
    when: "drains a pause",
    because: "it can let requests in before the drain has ended",
    remedy: "await the pause, or end it with resumeScheduler",
  },
  {
    operations: ["resumeMemoryOccupation"],
    when: "drains a release",
    because: "it has nothing to restore yet, and the engine falls asleep after it",
    remedy: "await the release, or end it with resumeScheduler",
  },
  {
    operations: ["resumeMemoryOccupation"],
    when: "has no memory released",
    because: "there is nothing to restore, and older engines end a pause by it",
    remedy: "ask isSleeping when in doubt; resumeScheduler ends a pause",
  },
  {
    operations: ["resumeMemoryOccupation"],
    when: "has a named region resident",
    because: "the engine refuses the whole call then",
    remedy: "name only regions that are released, or none",
  },
  {
    operations: loads,
    when: "runs requests",
    because: "requests would continue on a mixture of weights",
    remedy: "call pauseScheduler with wait or abort and await every engine's success",
  },
  {
    operations: loads,
    when: "drains a pause",
    because: "requests still run on the old weights",
    remedy: "await the pause",
  },
  {
    operations: loads,
    when: "drains a release",
    because: "the load would wait in one engine while another falls asleep, and neither answers",
    remedy: "await the release, then restore the weights' memory",
  },
  {
    operations: loads,
    when: "has its weights or nccl memory released",
    because: "that engine refuses on arrival while the others wait for it for ever",
    remedy: 'call resumeMemoryOccupation with tags ["weights"] (and "nccl") first',
  },
  {
    operations: loads,
    when: "is frozen by keep, and the caches are to be flushed",
    because: "frozen requests hold cache pages, so the flush fails and nothing is loaded",
    remedy: "send flushCache: false, or pause with wait or abort",
  },
  {
    operations: ["updateWeightsFromDistributed"],
    when: "is in no weight update group",
    because: "there is nobody to receive from",
    remedy: "call initWeightsUpdateGroup together with the trainer",
  },
  {
    operations: ["initWeightsUpdateGroup"],
    when: "is in a weight update group",
    because: "a second group fails, or replaces the live one",
    remedy: "call destroyWeightsUpdateGroup first",
  },
  {
    operations: ["profile"],
    when: "profiles, and a start is asked",
    because: "the engine refuses it",
    remedy: "stop the running profile first, if it is yours",
  },
  {
    operations: ["profile"],
    when: "does not profile, and a stop is asked",
    because: "the engine refuses it",
    remedy: "start a profile first",
  },
];
