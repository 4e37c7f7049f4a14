import type { ControlOutput, ControlRequestInit } from "../../messages.ts";

/** The memory regions an engine of release 0.1.0 may be able to release. */
export const memoryRegions = ["kv_cache", "weights", "cuda_graph", "nccl"] as const;

/** A region of device memory. */
export type MemoryRegion = (typeof memoryRegions)[number];

/**
 * What an engine's scheduler does. `paused` has drained, `frozen` holds its requests where they are, `asleep` has memory
 * released, `held` is one of these three without knowing which, `unknown` is what an unanswered call leaves behind.
 */
export type SchedulerState = "running" | "paused" | "frozen" | "asleep" | "held" | "unknown";

/** What a client knows of one engine, from the replies it has seen. */
export interface EngineState {
  /** The engine's index on the wire. */
  readonly engine: number;
  /** What its scheduler does. */
  readonly scheduler: SchedulerState;
  /** A pause or release that has been sent and has not answered yet. */
  readonly draining?: "pause" | "release";
  /** Where each memory region is; `unknown` after a release that named none, or an unanswered call. */
  readonly memory: Readonly<Record<MemoryRegion, "resident" | "released" | "unknown">>;
  /** Whether it is in a weight update group. */
  readonly weightGroup: "joined" | "none" | "unknown";
  /** Whether its profiler runs; `unknown` after a start that stops by itself. */
  readonly profiler: "running" | "off" | "unknown";
}

/** An engine that has just registered: engines handshake once, at their start. */
export function freshState(engine: number): EngineState {
  return { engine, scheduler: "running", memory: everywhere("resident"), weightGroup: "none", profiler: "off" };
}

/** An engine of which nothing is known: the guard leaves it to refuse by itself. */
export function unknownState(engine: number): EngineState {
  return { engine, scheduler: "unknown", memory: everywhere("unknown"), weightGroup: "unknown", profiler: "unknown" };
}

/** What is known while a request is out. */
export function afterSend(state: EngineState, request: ControlRequestInit): EngineState {
  switch (request.$tag) {
    case "PauseSchedulerReqInput":
      return request.mode === "keep" ? state : { ...state, draining: "pause" };
    case "ReleaseMemoryOccupationReqInput":
      return { ...state, draining: "release" };
    default:
      return state;
  }
}

/** What is known when no reply will tell: of a lost reply, or of a call that was given up. */
export function afterSilence(state: EngineState, request: ControlRequestInit): EngineState {
  switch (request.$tag) {
    case "PauseSchedulerReqInput":
      return request.mode === "keep" ? { ...state, scheduler: "unknown" } : state;
    case "ResumeSchedulerReqInput":
      return { ...state, scheduler: "unknown" };
    case "ResumeMemoryOccupationReqInput":
      return { ...state, scheduler: "unknown", memory: everywhere("unknown") };
    case "InitWeightsUpdateGroupReqInput":
    case "DestroyWeightsUpdateGroupReqInput":
      return { ...state, weightGroup: "unknown" };
    case "ProfileReq":
      return { ...state, profiler: "unknown" };
    default:
      return state;
  }
}

/** What is known after a reply. */
export function afterReply(state: EngineState, request: ControlRequestInit, reply: ControlOutput): EngineState {
  switch (reply.$tag) {
    case "PauseSchedulerReqOutput":
      if (!reply.success) return settled(state, state.scheduler);
      return settled(state, "mode" in request && request.mode === "keep" ? "frozen" : "paused");
    case "ResumeSchedulerReqOutput":
      return reply.success ? { ...state, scheduler: "running" } : state;
    case "IsSchedulerPausedReqOutput":
      return afterPausedQuery(state, reply.isPaused);
    case "IsSleepingReqOutput":
      return afterSleepingQuery(state, reply.isSleeping);
    case "ReleaseMemoryOccupationReqOutput":
      return reply.success ? afterRelease(settled(state, "asleep"), tagsOf(request)) : settled(state, state.scheduler);
    case "ResumeMemoryOccupationReqOutput":
      return reply.success ? afterRestore(state, tagsOf(request)) : state;
    case "InitWeightsUpdateGroupReqOutput":
      return { ...state, weightGroup: reply.success ? "joined" : state.weightGroup };
    case "DestroyWeightsUpdateGroupReqOutput":
      return { ...state, weightGroup: reply.success ? "none" : "unknown" };
    case "ProfileReqOutput":
      return reply.success && "kind" in request ? { ...state, profiler: afterProfile(request) } : state;
    default:
      return state;
  }
}

/** The state without a drain; the same object where nothing changes, as most replies change nothing. */
export function settled(state: EngineState, scheduler: SchedulerState): EngineState {
  if (state.draining === undefined && state.scheduler === scheduler) return state;
  const { draining: _, ...rest } = state;
  return { ...rest, scheduler };
}

function allResident({ memory }: EngineState): boolean {
  return memory.kv_cache === "resident" && memory.weights === "resident" && memory.cuda_graph === "resident" && memory.nccl === "resident";
}

type Memory = { -readonly [Region in MemoryRegion]: EngineState["memory"][Region] };

function everywhere(place: "resident" | "unknown"): Memory {
  return { kv_cache: place, weights: place, cuda_graph: place, nccl: place };
}

/** The memory regions a request names; null where it names none, which means all. */
export function tagsOf(request: ControlRequestInit): readonly string[] | null {
  return ("tags" in request ? request.tags : null) ?? null;
}

function afterPausedQuery(state: EngineState, isPaused: boolean): EngineState {
  if (!isPaused && state.scheduler === "running" && allResident(state)) return state;
  if (!isPaused) return { ...state, scheduler: "running", memory: everywhere("resident") };
  const known = state.scheduler !== "running" && state.scheduler !== "unknown";
  return known || state.draining !== undefined ? state : { ...state, scheduler: "held" };
}

function afterSleepingQuery(state: EngineState, isSleeping: boolean): EngineState {
  if (!isSleeping && state.scheduler !== "asleep" && allResident(state)) return state;
  if (!isSleeping) {
    return { ...state, scheduler: state.scheduler === "asleep" ? "unknown" : state.scheduler, memory: everywhere("resident") };
  }
  const known = memoryRegions.some((region) => state.memory[region] === "released");
  return { ...state, scheduler: "asleep", memory: known ? state.memory : everywhere("unknown") };
}

function afterRelease(state: EngineState, tags: readonly string[] | null): EngineState {
  const memory: Memory = { ...state.memory };
  // without tags an engine releases what it can, and it does not say what that is; these two it always can
  const released: readonly string[] = tags ?? ["kv_cache", "weights"];
  for (const region of memoryRegions) {
    if (released.includes(region)) memory[region] = "released";
    else if (tags === null) memory[region] = "unknown";
  }
  return { ...state, memory };
}

/** The last region back wakes an engine and ends the pause that was made before its release. */
function afterRestore(state: EngineState, tags: readonly string[] | null): EngineState {
  const memory: Memory = tags === null ? everywhere("resident") : { ...state.memory };
  for (const region of memoryRegions) if (tags?.includes(region)) memory[region] = "resident";
  if (state.scheduler !== "asleep" && state.scheduler !== "unknown") return { ...state, memory };
  const places = Object.values(memory);
  if (places.includes("released")) return { ...state, memory };
  return { ...state, memory, scheduler: places.includes("unknown") || state.scheduler === "unknown" ? "unknown" : "running" };
}

function afterProfile(request: { readonly kind?: unknown; readonly numSteps?: unknown }): EngineState["profiler"] {
  if (request.kind === 2) return "off";
  return request.numSteps === undefined || request.numSteps === null ? "running" : "unknown";
}
