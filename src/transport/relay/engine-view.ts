import type { EngineView, EngineViewInit } from "../../../generated/relay/types.ts";
import { type EngineState, memoryRegions, unknownState } from "../../client/guard/engine-state.ts";
import { decodeEngineCoreReadyResponse, encodeEngineCoreReadyResponse } from "../../messages.ts";
import type { EngineInfo } from "../connection.ts";

const nothing = new Uint8Array(0);

/** An engine and what the guard knows of it, as they travel; without its registration where that has been told. */
export function toView(info: EngineInfo, state: EngineState, withRegistration: boolean): EngineViewInit {
  const { index, capabilities, registration } = info;
  return {
    index,
    state: info.state,
    control: capabilities.control,
    dialect: capabilities.dialect,
    release: capabilities.release ?? null,
    registration: withRegistration ? encodeEngineCoreReadyResponse(registration) : nothing,
    scheduler: state.scheduler,
    draining: state.draining ?? null,
    memory: Object.entries(state.memory),
    weightGroup: state.weightGroup,
    profiler: state.profiler,
    load: withRegistration ? (info.load ?? null) : null,
  };
}

/** The engine that a view describes; `known` has its registration, where the view has none. */
export function infoOf(view: EngineView, known?: EngineInfo): EngineInfo {
  const registration =
    view.registration.length === 0 && known !== undefined ? known.registration : decodeEngineCoreReadyResponse(view.registration);
  const load = view.load ?? known?.load;
  return {
    index: view.index,
    registration,
    capabilities: {
      control: view.control,
      dialect: view.dialect === "slim" ? "slim" : "tagged",
      ...(view.release !== null && { release: view.release }),
    },
    state: view.state === "up" ? "up" : "dead",
    inFlight: 0,
    ...(load !== undefined && { load }),
  };
}

const words = {
  scheduler: ["running", "paused", "frozen", "asleep", "held"],
  place: ["resident", "released"],
  weightGroup: ["joined", "none"],
  profiler: ["running", "off"],
} as const;

/** What the relay's guard knows of an engine. A word that this release does not know is `unknown`. */
export function stateOf(view: EngineView): EngineState {
  const places = new Map(view.memory);
  const { memory } = unknownState(view.index);
  const told = memoryRegions.map((region) => [region, among(words.place, places.get(region))] as const);
  return {
    engine: view.index,
    scheduler: among(words.scheduler, view.scheduler),
    ...((view.draining === "pause" || view.draining === "release") && { draining: view.draining }),
    memory: { ...memory, ...Object.fromEntries(told) },
    weightGroup: among(words.weightGroup, view.weightGroup),
    profiler: among(words.profiler, view.profiler),
  };
}

function among<Word extends string>(known: readonly Word[], word: string | undefined): Word | "unknown" {
  return known.find((one) => one === word) ?? "unknown";
}
