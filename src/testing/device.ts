import { PROFILE_START } from "../../generated/tokenspeed/operations.ts";
import type { ControlRequest } from "../../generated/tokenspeed/types.ts";
import { operationOf } from "./operation-names.ts";
import type { RankRules, Stage, Twist } from "./rules.ts";
import { EngineCrash, EngineFault } from "./stops.ts";
import type { DeviceRequest } from "./weight-operations.ts";
import { VirtualWeights } from "./weights.ts";

/** Tells of something that happened on a rank, for event lines. */
export type Tell = (event: string, fields: Readonly<Record<string, unknown>>) => void;

/** What the device says to an operation. */
export interface Outcome {
  readonly success: boolean;
  readonly message: string;
}

/**
 * The stand-in for one rank's device: what it computes is a count, everything else it does it says. Time it takes is not
 * waited for here but collected, since the ranks of a group take theirs at the same time.
 */
export class Device {
  readonly rules: RankRules;
  readonly weights: VirtualWeights;
  readonly #needsWeightsGroup: boolean;
  readonly #tell: Tell;
  #group: string | undefined;
  #profiling = false;
  #profileStepsLeft = Number.POSITIVE_INFINITY;
  #busyMs = 0;

  constructor(rules: RankRules, model: string, needsWeightsGroup: boolean, tell: Tell) {
    this.rules = rules;
    this.#needsWeightsGroup = needsWeightsGroup;
    this.#tell = tell;
    this.weights = new VirtualWeights(model);
  }

  /** Name of the weight update group it is in. */
  get group(): string | undefined {
    return this.#group;
  }

  /** Whether the profiler runs. */
  get profiling(): boolean {
    return this.#profiling;
  }

  /** Takes the milliseconds it was busy for. */
  takeBusy(): number {
    const busy = this.#busyMs;
    this.#busyMs = 0;
    return busy;
  }

  /** Applies the rules for `op`: adds the delay to the busy time and throws on a crash. */
  meet(op: string, stage: Stage): Twist | undefined {
    const { delayMs, twist } = this.rules.meet(op, stage);
    if (delayMs > 0) {
      this.#busyMs += delayMs;
      this.#tell("delay", { op, ms: delayMs });
    }
    if (twist?.kind === "crash") {
      this.#tell("crash", { op });
      throw new EngineCrash(op);
    }
    return twist;
  }

  /** A step that can only go well or break. */
  survive(op: string): void {
    const twist = this.meet(op, "device");
    if (twist?.kind === "fault") throw new EngineFault(twist.message);
  }

  /** A forward of `forwardMs`, with a batch or without. */
  forward(forwardMs: number): void {
    this.survive("Forward");
    this.#busyMs += forwardMs;
    if (!this.#profiling) return;
    this.#profileStepsLeft -= 1;
    if (this.#profileStepsLeft > 0) return;
    this.#profiling = false;
    this.#tell("device", { op: "Profile", stopped: "num_steps" });
  }

  /** A gated operation that every rank holds. */
  update(request: DeviceRequest): Outcome {
    const op = operationOf(request.$tag);
    const twist = this.meet(op, "device");
    if (twist?.kind === "fault") throw new EngineFault(twist.message);
    const outcome = twist?.kind === "fail" ? { success: false, message: twist.message } : this.#apply(request);
    this.#tell("device", { op, ...outcome });
    return outcome;
  }

  /** Starts or stops the profiler. Any kind but a start is a stop. */
  profile(request: Extract<ControlRequest, { $tag: "ProfileReq" }>): Outcome {
    const twist = this.meet("Profile", "device");
    if (twist?.kind === "fault") throw new EngineFault(twist.message);
    const outcome =
      twist?.kind === "fail"
        ? { success: false, message: twist.message }
        : this.#switchProfiler(request.kind === PROFILE_START, request.numSteps);
    this.#tell("device", { op: "Profile", ...outcome });
    return outcome;
  }

  /** Gives memory back. */
  release(tags: readonly string[]): void {
    this.survive("ReleaseMemoryOccupation");
    this.#tell("device", { op: "ReleaseMemoryOccupation", tags });
  }

  /** Takes memory again. */
  resume(tags: readonly string[]): void {
    this.survive("ResumeMemoryOccupation");
    this.#tell("device", { op: "ResumeMemoryOccupation", tags });
  }

  #apply(request: DeviceRequest): Outcome {
    switch (request.$tag) {
      case "InitWeightsUpdateGroupReqInput":
        this.#group = request.groupName;
        return { success: true, message: "weight update group initialized" };
      case "DestroyWeightsUpdateGroupReqInput": {
        const message = this.#group === undefined ? "weight update group not initialized" : "weight update group destroyed";
        this.#group = undefined;
        return { success: true, message };
      }
      case "UpdateWeightsFromDistributedReqInput":
        if (this.#needsWeightsGroup && this.#group === undefined) {
          return { success: false, message: "weight update group not initialized" };
        }
        this.weights.apply(JSON.stringify([request.names, request.dtypeNames, request.shapes]));
        return { success: true, message: `updated ${request.names.length} weights` };
      case "UpdateWeightsFromMooncakeReqInput":
        this.weights.apply(`mooncake:${request.version}`);
        return { success: true, message: `applied model version ${request.version}: stand-in` };
      case "UpdateWeightFromDiskReqInput":
        this.weights.apply(request.modelPath);
        return { success: true, message: `loaded weights from ${request.modelPath}` };
    }
  }

  #switchProfiler(start: boolean, numSteps: number | null): Outcome {
    if (start && this.#profiling) {
      return { success: false, message: "Profiling is already in progress. Call /stop_profile first." };
    }
    if (!start && !this.#profiling) {
      return { success: false, message: "Profiling is not in progress. Call /start_profile first." };
    }
    this.#profiling = start;
    this.#profileStepsLeft = numSteps ?? Number.POSITIVE_INFINITY;
    return { success: true, message: start ? "Succeeded" : "Succeeded." };
  }
}
