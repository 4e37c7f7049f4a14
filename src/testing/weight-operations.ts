import type {
  ControlOutputInit,
  ControlRequest,
  DestroyWeightsUpdateGroupReqInput,
  InitWeightsUpdateGroupReqInput,
  RebalanceExpertsReqInput,
  UpdateWeightFromDiskReqInput,
  UpdateWeightsFromDistributedReqInput,
  UpdateWeightsFromMooncakeReqInput,
} from "../../generated/tokenspeed/types.ts";

/** The operations that rewrite the weights. */
export type WeightLoad = UpdateWeightsFromDistributedReqInput | UpdateWeightsFromMooncakeReqInput | UpdateWeightFromDiskReqInput;

/** The gated operations that the device runs. */
export type DeviceRequest = WeightLoad | InitWeightsUpdateGroupReqInput | DestroyWeightsUpdateGroupReqInput;

/** The operations that go through the gate. */
export type GatedRequest = DeviceRequest | RebalanceExpertsReqInput;

/** Whether a gated operation rewrites the weights, and so may flush the cache first. */
export function isWeightLoad(request: ControlRequest): request is WeightLoad {
  return (
    request.$tag === "UpdateWeightsFromDistributedReqInput" ||
    request.$tag === "UpdateWeightsFromMooncakeReqInput" ||
    request.$tag === "UpdateWeightFromDiskReqInput"
  );
}

/** Whether a gated operation asks for a cache flush first. */
export function wantsFlush(request: GatedRequest): boolean {
  return isWeightLoad(request) && request.flushCache;
}

/**
 * The version a load publishes its weights under: the one it names; a flushed Mooncake load without one publishes the
 * committed version's own number; `undefined` keeps the version.
 */
export function requestedVersion(load: WeightLoad): string | undefined {
  if (load.weightVersion !== null) return load.weightVersion;
  return load.$tag === "UpdateWeightsFromMooncakeReqInput" && load.flushCache ? String(load.version) : undefined;
}

/** Why a load would break the storage tier's namespace, which pages of version `current` are in. */
export function versionRefusal(load: WeightLoad, current: string | undefined): string | undefined {
  if (current === undefined) return undefined;
  const requested = requestedVersion(load);
  if (load.flushCache) {
    if (requested !== undefined) return undefined;
    return "L3 flushed updates require weight_version so independent replicas cannot restore another checkpoint's objects";
  }
  if (requested === undefined || requested === current) return undefined;
  return "L3 weight_version cannot change without flush_cache; retry the update with flush_cache=True so Device/Host KV and in-flight writebacks cannot land in the new namespace";
}

/** A gated operation's reply. */
export function gatedReply(request: GatedRequest, success: boolean, message: string): ControlOutputInit {
  switch (request.$tag) {
    case "InitWeightsUpdateGroupReqInput":
      return { $tag: "InitWeightsUpdateGroupReqOutput", success, message };
    case "DestroyWeightsUpdateGroupReqInput":
      return { $tag: "DestroyWeightsUpdateGroupReqOutput", success, message };
    case "UpdateWeightsFromDistributedReqInput":
      return { $tag: "UpdateWeightsFromDistributedReqOutput", success, message };
    case "UpdateWeightsFromMooncakeReqInput":
      return { $tag: "UpdateWeightsFromMooncakeReqOutput", success, message };
    case "UpdateWeightFromDiskReqInput":
      return { $tag: "UpdateWeightFromDiskReqOutput", success, message, numPausedRequests: 0 };
    case "RebalanceExpertsReqInput":
      return { $tag: "RebalanceExpertsReqOutput", success, message };
  }
}
