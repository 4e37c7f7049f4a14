import type { ControlOutputInit, ControlRequest } from "../../generated/tokenspeed/types.ts";
import { Memory } from "./memory.ts";
import { quoted, quotedList } from "./texts.ts";
import { type GatedRequest, gatedReply, isWeightLoad, requestedVersion, versionRefusal, type WeightLoad } from "./weight-operations.ts";

/** Which call an operation came as: in the second dialect its id, in the first one nothing. */
export type CallId = number | undefined;

/** What a drain ends with. */
export type Drain = ({ readonly kind: "pause" } | { readonly kind: "release"; readonly tags: readonly string[] }) & {
  readonly callId: CallId;
};

/** A gated operation that waits for the other ranks. */
export interface Queued {
  readonly request: GatedRequest;
  readonly callId: CallId;
}

/** What leaves at the end of a round: an operation's reply, or the refusal of a call that was none. */
export type Answer =
  | { readonly output: ControlOutputInit; readonly callId: CallId }
  | { readonly output: undefined; readonly callId: number; readonly refusal: string };

/** What an operation asks of the device before it is answered. */
export type DeviceStep =
  | { readonly kind: "profile"; readonly request: Extract<ControlRequest, { $tag: "ProfileReq" }> }
  | { readonly kind: "resume"; readonly tags: readonly string[] };

/** What the operations depend on. */
export interface ControlSettings {
  /** Memory can be released. */
  readonly memorySaver: boolean;
  /** The regions that can be. */
  readonly memoryRegions: readonly string[];
  /** The version the storage tier publishes under; absent without the tier. */
  readonly l3WeightVersion: string | undefined;
}

/**
 * One rank's state of pause, memory and weight operations, as operations arrive. Replies collect in the order they are
 * decided and leave at the end of the round. Pauses reach `new` (no admissions) or `all` (nothing is scheduled).
 */
export class Controls {
  readonly memory: Memory;
  readonly #memorySaver: boolean;
  #paused: "no" | "new" | "all" = "no";
  #drain: Drain | undefined;
  #abortsAll = false;
  #l3WeightVersion: string | undefined;
  #answers: Answer[] = [];
  #flushes: CallId[] = [];
  /** Gated operations in order of arrival. */
  readonly queue: Queued[] = [];

  constructor(settings: ControlSettings) {
    this.memory = new Memory(settings.memoryRegions);
    this.#memorySaver = settings.memorySaver;
    this.#l3WeightVersion = settings.l3WeightVersion;
  }

  /** Whether the scheduler is paused in any way. */
  get paused(): boolean {
    return this.#paused !== "no";
  }

  /** Whether nothing is scheduled at all. */
  get frozen(): boolean {
    return this.#paused === "all";
  }

  /** The pause or release that waits for an empty scheduler. */
  get drain(): Drain | undefined {
    return this.#drain;
  }

  /** Queues a reply for the end of the round. */
  reply(output: ControlOutputInit, callId: CallId): void {
    this.#answers.push({ output, callId });
  }

  /** Queues the refusal of a call that is no operation. */
  refuse(callId: number, refusal: string): void {
    this.#answers.push({ output: undefined, callId, refusal });
  }

  /** Takes the replies and refusals so far. */
  takeAnswers(): Answer[] {
    const answers = this.#answers;
    this.#answers = [];
    return answers;
  }

  /** Whether a flush came this round. */
  get flushAsked(): boolean {
    return this.#flushes.length > 0;
  }

  /** Answers the round's flushes. */
  endFlushes(success: boolean): void {
    for (const callId of this.#flushes) this.reply({ $tag: "FlushCacheReqOutput", success }, callId);
    this.#flushes = [];
  }

  /** Takes, once, whether an abort pause has to end what runs. */
  takeAbortsAll(): boolean {
    const abortsAll = this.#abortsAll;
    this.#abortsAll = false;
    return abortsAll;
  }

  /** Acts on an operation as it arrives; `rebalance` says why a release cannot run, where a rebalance forbids it. */
  handle(request: ControlRequest, callId: CallId, rebalance: string | undefined): DeviceStep | undefined {
    switch (request.$tag) {
      case "FlushCacheReqInput":
        this.#flushes.push(callId);
        return undefined;
      case "PauseSchedulerReqInput":
        this.#answer("PauseSchedulerReqOutput", this.#pause(request.mode, callId), callId);
        return undefined;
      case "ResumeSchedulerReqInput":
        this.#answer("ResumeSchedulerReqOutput", this.#resume(), callId);
        return undefined;
      case "IsSchedulerPausedReqInput":
        this.reply({ $tag: "IsSchedulerPausedReqOutput", isPaused: this.paused }, callId);
        return undefined;
      case "ReleaseMemoryOccupationReqInput":
        this.#answer("ReleaseMemoryOccupationReqOutput", this.#release(request.tags, callId, rebalance), callId);
        return undefined;
      case "ResumeMemoryOccupationReqInput":
        return this.#resumeMemory(request.tags, callId);
      case "IsSleepingReqInput":
        this.reply({ $tag: "IsSleepingReqOutput", isSleeping: this.memory.asleep }, callId);
        return undefined;
      case "GetInternalStateReq":
        this.reply({ $tag: "GetInternalStateReqOutput", internalState: {} }, callId);
        return undefined;
      case "SetInternalStateReq":
        this.reply({ $tag: "SetInternalStateReqOutput", updated: false, serverArgs: {} }, callId);
        return undefined;
      case "UpdateWeightsFromTensorReqInput":
        this.reply(
          {
            $tag: "UpdateWeightsFromTensorReqOutput",
            success: false,
            message: "update_weights_from_tensor is not supported on this engine",
          },
          callId,
        );
        return undefined;
      case "ProfileReq":
        return { kind: "profile", request };
      default:
        this.#enqueue(request, callId);
        return undefined;
    }
  }

  /** The scheduler is empty: the drain is over, and the caller does what it waited for. */
  endDrain(): void {
    const drain = this.#drain;
    this.#drain = undefined;
    if (drain?.kind === "release") {
      this.memory.release(drain.tags);
      // also for an empty list, which is why only ResumeScheduler ends that freeze
      this.#paused = "all";
      this.#answer("ReleaseMemoryOccupationReqOutput", "", drain.callId);
    } else if (drain?.kind === "pause") {
      this.#answer("PauseSchedulerReqOutput", "", drain.callId);
    }
  }

  /** The device has the regions again. Nothing left released also ends a pause made before the release. */
  endResume(tags: readonly string[], callId: CallId): void {
    this.memory.resume(tags);
    if (!this.memory.asleep) this.#paused = "no";
    this.#answer("ResumeMemoryOccupationReqOutput", "", callId);
  }

  /** Publishes the version of a load that succeeded on every rank, or says why the storage tier refuses it. */
  commitVersion(load: WeightLoad): string | undefined {
    if (this.#l3WeightVersion === undefined) return undefined;
    const refusal = versionRefusal(load, this.#l3WeightVersion);
    if (refusal === undefined) this.#l3WeightVersion = requestedVersion(load) ?? this.#l3WeightVersion;
    return refusal;
  }

  /** Replies with success for an empty message, with failure for another, and not yet for none. */
  #answer(
    $tag: "PauseSchedulerReqOutput" | "ResumeSchedulerReqOutput" | "ReleaseMemoryOccupationReqOutput" | "ResumeMemoryOccupationReqOutput",
    message: string | undefined,
    callId: CallId,
  ): void {
    if (message !== undefined) this.reply({ $tag, success: message === "", message }, callId);
  }

  #enqueue(request: GatedRequest, callId: CallId): void {
    const refusal = isWeightLoad(request) ? (this.memory.loadRefusal() ?? versionRefusal(request, this.#l3WeightVersion)) : undefined;
    if (refusal === undefined) this.queue.push({ request, callId });
    else this.reply(gatedReply(request, false, refusal), callId);
  }

  #pause(mode: string, callId: CallId): string | undefined {
    if (mode !== "abort" && mode !== "wait" && mode !== "keep") return `invalid pause mode: ${quoted(mode)}`;
    if (this.memory.asleep) return "memory is unavailable; use resume_memory_occupation";
    if (this.#drain !== undefined) return "a pause is already in progress";
    if (mode === "keep") {
      this.#paused = "all";
      return "";
    }
    if (mode === "abort") this.#abortsAll = true;
    this.#startDrain({ kind: "pause", callId });
    return undefined;
  }

  #resume(): string {
    if (this.memory.asleep) {
      return "memory is released; call resume_memory_occupation to wake before resuming the scheduler";
    }
    // a pause that has not drained fails, so that its caller does not swap weights under running requests
    const drain = this.#drain;
    if (drain?.kind === "pause") this.#answer("PauseSchedulerReqOutput", "resumed before pause drained", drain.callId);
    if (drain?.kind === "release") this.#answer("ReleaseMemoryOccupationReqOutput", "resumed before release drained", drain.callId);
    this.#drain = undefined;
    this.#paused = "no";
    this.#abortsAll = false;
    return "";
  }

  #release(tags: readonly string[] | null, callId: CallId, rebalance: string | undefined): string | undefined {
    if (!this.#memorySaver) return "memory saver not enabled (--enable-memory-saver)";
    const normal = this.memory.toRelease(tags);
    if ("refusal" in normal) return normal.refusal;
    const already = normal.tags.filter((tag) => this.memory.released.includes(tag));
    if (already.length > 0) return `tags already released: ${quotedList(already)}`;
    if (this.#drain !== undefined) return "a pause or release is already in progress";
    if (this.#paused === "all" && !this.memory.asleep) {
      return "a keep pause froze the scheduler; resume_scheduler before releasing memory";
    }
    if (rebalance !== undefined) return `cannot release memory: ${rebalance}`;
    this.#startDrain({ kind: "release", tags: normal.tags, callId });
    return undefined;
  }

  #resumeMemory(tags: readonly string[] | null, callId: CallId): DeviceStep | undefined {
    const normal = this.memory.toResume(tags);
    if (!("refusal" in normal) && normal.tags.length > 0) return { kind: "resume", tags: normal.tags };
    this.#answer("ResumeMemoryOccupationReqOutput", "refusal" in normal ? normal.refusal : "", callId);
    return undefined;
  }

  #startDrain(drain: Drain): void {
    // with memory released it stays frozen: no forward may run before the memory is back
    if (!this.memory.asleep) this.#paused = "new";
    this.#drain = drain;
  }
}
