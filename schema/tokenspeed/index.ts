import { protocol, union } from "../dsl.ts";
import { AbortRids, SessionParams, TokenizedGenerateReqInput } from "./generate.ts";
import { EngineCoreReadyResponse, HandshakeAddresses, HandshakeInitMessage, ReadyMessage } from "./handshake.ts";
import { leavesOut } from "./left-out.ts";
import { isSleeping, releaseMemoryOccupation, resumeMemoryOccupation } from "./memory.ts";
import {
  EncodeRequest,
  MODALITY_AUDIO,
  MODALITY_IMAGE,
  MODALITY_VIDEO,
  MultimodalDataItem,
  MultimodalInputs,
  ShmTensorHandle,
} from "./multimodal.ts";
import { BatchTokenIDOutSlim } from "./output.ts";
import { PROFILE_START, PROFILE_STOP, profile } from "./profile.ts";
import { releases } from "./releases/index.ts";
import { SamplingParams } from "./sampling.ts";
import { flushCache, isSchedulerPaused, pauseScheduler, resumeScheduler } from "./scheduler.ts";
import { ControlCallSlim, ControlReplySlim } from "./slim.ts";
import { getInternalState, setInternalState } from "./state.ts";
import {
  destroyWeightsUpdateGroup,
  initWeightsUpdateGroup,
  rebalanceExperts,
  updateWeightFromDisk,
  updateWeightsFromDistributed,
  updateWeightsFromMooncake,
  updateWeightsFromTensor,
} from "./weights.ts";

/** TokenSpeed's engine wire at engine release 0.1.0 (crates `tokenspeed-*` 0.1.0). */
export const tokenspeed = protocol("tokenspeed", {
  release: "0.1.0",
  doc: "TokenSpeed's engine wire over ZeroMQ.",
  structs: [
    ReadyMessage,
    HandshakeAddresses,
    HandshakeInitMessage,
    EngineCoreReadyResponse,
    TokenizedGenerateReqInput,
    SamplingParams,
    SessionParams,
    MultimodalInputs,
    MultimodalDataItem,
    ShmTensorHandle,
    EncodeRequest,
    BatchTokenIDOutSlim,
    ControlCallSlim,
    ControlReplySlim,
  ],
  values: [AbortRids],
  operations: [
    pauseScheduler,
    resumeScheduler,
    isSchedulerPaused,
    flushCache,
    initWeightsUpdateGroup,
    destroyWeightsUpdateGroup,
    updateWeightsFromDistributed,
    updateWeightsFromTensor,
    updateWeightsFromMooncake,
    updateWeightFromDisk,
    rebalanceExperts,
    releaseMemoryOccupation,
    resumeMemoryOccupation,
    isSleeping,
    getInternalState,
    setInternalState,
    profile,
  ],
  unions: [
    union("ControlRequest", { doc: "Any control request.", members: "requests" }),
    union("ControlOutput", { doc: "Any control reply.", members: "replies" }),
  ],
  constants: [PROFILE_START, PROFILE_STOP, MODALITY_IMAGE, MODALITY_VIDEO, MODALITY_AUDIO],
  leavesOut,
  releases,
});
