import type { ControlRequestInit } from "../../messages.ts";
import { type EngineState, memoryRegions, tagsOf } from "./engine-state.ts";

/**
 * The conditions of the guard's table. Each holds only where it is known to hold: what is unknown is left to the engine,
 * which refuses by itself or is asked first.
 */
export const conditions = {
  "runs requests": ({ state }) => state.scheduler === "running" && state.draining === undefined,
  "drains a pause": ({ state }) => state.draining === "pause",
  "drains a release": ({ state }) => state.draining === "release",
  "is frozen by keep": ({ state }) => state.scheduler === "frozen" && state.draining === undefined,
  "is frozen by keep, and the caches are to be flushed": ({ state, request }) =>
    state.scheduler === "frozen" && state.draining === undefined && !("flushCache" in request && request.flushCache === false),
  "has memory released": ({ state }) => state.scheduler === "asleep",
  "has memory released, and no tags are named": ({ state, request }) => state.scheduler === "asleep" && tagsOf(request) === null,
  "has its weights or nccl memory released": ({ state }) =>
    state.scheduler === "asleep" && (state.memory.weights !== "resident" || state.memory.nccl === "released"),
  "has no memory released": ({ state }) => memoryRegions.every((region) => state.memory[region] === "resident"),
  "has a named region released": ({ state, request }) =>
    memoryRegions.some((region) => named(request, region) && state.memory[region] === "released"),
  "has a named region resident": ({ state, request }) =>
    memoryRegions.some((region) => named(request, region) && state.memory[region] === "resident"),
  "is in a weight update group": ({ state }) => state.weightGroup === "joined",
  "is in no weight update group": ({ state }) => state.weightGroup === "none",
  "profiles, and a start is asked": ({ state, request }) => state.profiler === "running" && "kind" in request && request.kind === 1,
  "does not profile, and a stop is asked": ({ state, request }) => state.profiler === "off" && "kind" in request && request.kind === 2,
} as const satisfies Readonly<Record<string, (known: { readonly state: EngineState; readonly request: ControlRequestInit }) => boolean>>;

/** The name of a condition; reads after "the engine". */
export type Condition = keyof typeof conditions;

function named(request: ControlRequestInit, region: string): boolean {
  return tagsOf(request)?.includes(region) ?? false;
}
