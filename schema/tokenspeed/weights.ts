import { bool, bytes, field, i64, list, nullable, operation, str, struct } from "../dsl.ts";
import { BaseReq } from "./base.ts";

const flag = [
  field("success", bool, { doc: "Whether the operation took effect on every rank." }),
  field("message", str, { doc: "What the engine says about it." }),
];
const groupName = field("group_name", str, { default: "weight_update_group", doc: "Name of the weight update group." });
const flushCacheDoc = "Whether cached KV is dropped first; refused by the engine while any request runs.";
const portRange = "a TCP port is from 1 to 65535";
// what torch calls the dtypes that a checkpoint may hold
const dtypeNames = [
  ...["bfloat16", "float16", "float32", "float64"],
  ...["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"],
  ...["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"],
];
const weightVersionDoc = "Version label to publish with the new weights; nil keeps the label.";

export const InitWeightsUpdateGroupReqInput = struct("InitWeightsUpdateGroupReqInput", {
  doc: "Join the trainer's process group for weight updates.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [
    field("master_address", str, { doc: "Host of the trainer's TCP store." }),
    field("master_port", i64, { doc: "Port of the trainer's TCP store." }),
    field("rank_offset", i64, { doc: "Rank in the group of the engine's first worker." }),
    field("world_size", i64, { doc: "Number of members of the group, trainer included." }),
    groupName,
    field("backend", str, { default: "nccl", doc: "Collective backend." }),
  ],
});
export const InitWeightsUpdateGroupReqOutput = struct("InitWeightsUpdateGroupReqOutput", {
  doc: "The engine joined the group, or why not.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: flag,
});
export const initWeightsUpdateGroup = operation("initWeightsUpdateGroup", {
  request: InitWeightsUpdateGroupReqInput,
  reply: InitWeightsUpdateGroupReqOutput,
  effect: "weights",
  answers: "gated",
  timeoutMs: 600_000,
  repeatable: false,
  since: "0.1.0",
  slim: { method: "init_weights_update_group" },
  summary: "Join the trainer's weight update group",
  refuses: [
    { field: "master_address", when: "empty", because: "the rendezvous would never end; name the host of the trainer's TCP store" },
    { field: "master_port", when: "below", limit: 1, because: portRange },
    { field: "master_port", when: "above", limit: 65_535, because: portRange },
    { field: "world_size", when: "below", limit: 2, because: "the group has the trainer and at least one worker" },
    { field: "rank_offset", when: "below", limit: 0, because: "ranks count from 0" },
    {
      field: "rank_offset",
      when: "not below",
      other: "world_size",
      because: "the engine's workers are ranks of that group, and the rendezvous would never end",
    },
    { field: "group_name", when: "empty", because: "the group could not be destroyed by its name" },
  ],
  doc: "Answers after the rendezvous, so call it while the trainer makes its own side of the group; the engine serves nothing meanwhile. After a timeout the group is broken: destroy it and join again.",
});

export const DestroyWeightsUpdateGroupReqInput = struct("DestroyWeightsUpdateGroupReqInput", {
  doc: "Leave the weight update group.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [groupName],
});
export const DestroyWeightsUpdateGroupReqOutput = struct("DestroyWeightsUpdateGroupReqOutput", {
  doc: "The engine left the group, or why not.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: flag,
});
export const destroyWeightsUpdateGroup = operation("destroyWeightsUpdateGroup", {
  request: DestroyWeightsUpdateGroupReqInput,
  reply: DestroyWeightsUpdateGroupReqOutput,
  effect: "weights",
  answers: "gated",
  timeoutMs: 120_000,
  repeatable: true,
  since: "0.1.0",
  slim: { method: "destroy_weights_update_group" },
  summary: "Leave the weight update group",
  doc: "Without a group it succeeds and says so.",
});

export const UpdateWeightsFromDistributedReqInput = struct("UpdateWeightsFromDistributedReqInput", {
  doc: "Receive tensors that the trainer broadcasts.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [
    field("names", list(str), { doc: "Parameter names, in the order of the broadcasts." }),
    field("dtype_names", list(str), { doc: "One dtype name for each parameter, such as `bfloat16`." }),
    field("shapes", list(list(i64)), { doc: "One shape for each parameter, in elements." }),
    groupName,
    field("flush_cache", bool, { default: true, doc: flushCacheDoc }),
    field("weight_version", nullable(str), { doc: weightVersionDoc }),
  ],
});
export const UpdateWeightsFromDistributedReqOutput = struct("UpdateWeightsFromDistributedReqOutput", {
  doc: "The tensors were loaded, or why not.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: flag,
});
export const updateWeightsFromDistributed = operation("updateWeightsFromDistributed", {
  request: UpdateWeightsFromDistributedReqInput,
  reply: UpdateWeightsFromDistributedReqOutput,
  effect: "weights",
  answers: "gated",
  timeoutMs: 600_000,
  repeatable: false,
  since: "0.1.0",
  slim: { method: "update_weights_from_distributed", rename: { dtype_names: "dtypes" } },
  summary: "Load weights that the trainer broadcasts",
  doc: "Start it together with the trainer's broadcasts. There is no rollback: after a failure destroy the group, join again and send the whole set.",
  refuses: [
    { field: "names", when: "empty", because: "an empty list loads nothing and still answers success; name the parameters to load" },
    { field: "names", when: "an item is empty", because: "no parameter has that name" },
    {
      field: "dtype_names",
      when: "of another length than",
      other: "names",
      because: "each parameter has one dtype, and the broadcasts would get out of step",
    },
    { field: "dtype_names", when: "an item is not one of", values: dtypeNames, because: "torch has no such dtype" },
    {
      field: "shapes",
      when: "of another length than",
      other: "names",
      because: "each parameter has one shape, and the broadcasts would get out of step",
    },
    { field: "shapes", when: "an item is below", limit: 0, because: "no tensor has a negative dimension" },
  ],
});

export const UpdateWeightsFromTensorReqInput = struct("UpdateWeightsFromTensorReqInput", {
  doc: "Load tensors that travel with the request.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [
    field("serialized_named_tensors", list(bytes), { doc: "One serialized set of named tensors for each worker." }),
    field("load_format", nullable(str), { doc: "How the tensors are serialized; nil for the engine's own." }),
    field("flush_cache", bool, { doc: flushCacheDoc }),
    field("weight_version", nullable(str), { default: null, doc: weightVersionDoc }),
  ],
});
export const UpdateWeightsFromTensorReqOutput = struct("UpdateWeightsFromTensorReqOutput", {
  doc: "Release 0.1.0 always refuses.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: flag,
});
export const updateWeightsFromTensor = operation("updateWeightsFromTensor", {
  request: UpdateWeightsFromTensorReqInput,
  reply: UpdateWeightsFromTensorReqOutput,
  unpickles: true,
  effect: "weights",
  answers: "at once",
  timeoutMs: 60_000,
  repeatable: true,
  since: "0.1.0",
  summary: "Load weights sent with the request",
  doc: "Release 0.1.0 answers that it does not support this; use the distributed or Mooncake update.",
});

export const UpdateWeightsFromMooncakeReqInput = struct("UpdateWeightsFromMooncakeReqInput", {
  doc: "Load a committed version from the Mooncake weight store.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [
    field("version", i64, { doc: "Version number in the store." }),
    field("flush_cache", bool, { doc: flushCacheDoc }),
    field("weight_version", nullable(str), { doc: weightVersionDoc }),
  ],
});
export const UpdateWeightsFromMooncakeReqOutput = struct("UpdateWeightsFromMooncakeReqOutput", {
  doc: "The version was loaded, or why not.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: flag,
});
export const updateWeightsFromMooncake = operation("updateWeightsFromMooncake", {
  request: UpdateWeightsFromMooncakeReqInput,
  reply: UpdateWeightsFromMooncakeReqOutput,
  effect: "weights",
  answers: "gated",
  timeoutMs: 3_600_000,
  repeatable: true,
  since: "0.1.0",
  slim: { method: "update_weights_from_mooncake" },
  summary: "Load a version from the Mooncake store",
  refuses: [{ field: "version", when: "below", limit: 0, because: "versions count from 0" }],
  doc: "Every worker reads its own shard. Loading the same version again does no harm.",
});

export const UpdateWeightFromDiskReqInput = struct("UpdateWeightFromDiskReqInput", {
  doc: "Load a checkpoint from disk.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [
    field("model_path", str, { doc: "Path of the checkpoint, as the engine sees it." }),
    field("load_format", nullable(str), { default: null, doc: "Checkpoint format; nil for the engine's own." }),
    field("weight_version", nullable(str), { default: null, doc: weightVersionDoc }),
    field("flush_cache", bool, { default: true, doc: flushCacheDoc }),
  ],
});
export const UpdateWeightFromDiskReqOutput = struct("UpdateWeightFromDiskReqOutput", {
  doc: "The checkpoint was loaded, or why not.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [
    ...flag,
    field("num_paused_requests", nullable(i64), { default: 0, doc: "Requests paused for the load; always 0 in release 0.1.0." }),
  ],
});
export const updateWeightFromDisk = operation("updateWeightFromDisk", {
  request: UpdateWeightFromDiskReqInput,
  reply: UpdateWeightFromDiskReqOutput,
  effect: "weights",
  answers: "gated",
  timeoutMs: 1_800_000,
  repeatable: true,
  since: "0.1.0",
  slim: { method: "update_weights_from_disk" },
  summary: "Load a checkpoint from disk",
  refuses: [{ field: "model_path", when: "empty", because: "there is no checkpoint without a path" }],
  doc: "The engine serves nothing while it loads. Different content on different ranks can end all of them, so a call always goes to the whole group.",
});

export const RebalanceExpertsReqInput = struct("RebalanceExpertsReqInput", {
  doc: "Take an expert load snapshot and start a rebalance.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [],
});
export const RebalanceExpertsReqOutput = struct("RebalanceExpertsReqOutput", {
  doc: "The snapshot was taken, or why not.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: flag,
});
export const rebalanceExperts = operation("rebalanceExperts", {
  request: RebalanceExpertsReqInput,
  reply: RebalanceExpertsReqOutput,
  effect: "weights",
  answers: "gated",
  timeoutMs: 120_000,
  repeatable: true,
  since: "0.1.0",
  slim: { method: "rebalance_experts" },
  summary: "Start an expert rebalance",
  doc: "Answers once the snapshot was taken; the new placement commits some forwards later, so it never finishes on a paused engine.",
});
