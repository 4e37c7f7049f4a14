import { type Case, imported, python, replies, requests, slim, weights } from "./compare-text.ts";

/** The history of the engine's file, commit by commit (section 5 of wire/tokenspeed.md). */
export const history: readonly Case[] = [
  [
    "8904b0ca: requests gone",
    python("ProfileReqInput(BaseReq)") + python("ParseFunctionCallReq(BaseReq)"),
    "",
    `ProfileReqInput: struct removed: ${requests}`,
    `ParseFunctionCallReq: struct removed: ${requests}`,
  ],
  [
    "85f664d6: multimodal fields",
    imported +
      python(
        "TokenizedGenerateReqInput(BaseReq, kw_only=True)",
        "sampling_params: SamplingParams",
        "input_extra_infos: list[dict] | None = None",
      ),
    imported +
      python(
        "TokenizedGenerateReqInput(BaseReq, kw_only=True)",
        "sampling_params: SamplingParams",
        "input_extra_infos: list[dict] | None = None",
        "input_ids_unpadded: list[int] | None = None",
        "multimodal_inputs: MultimodalInputs | None = None",
      ),
    "TokenizedGenerateReqInput.input_ids_unpadded: field appended with default: compatible",
    "TokenizedGenerateReqInput.multimodal_inputs: field appended with default: compatible",
  ],
  [
    "e69d1d4b: pause",
    "",
    'PauseMode = Literal["abort", "wait", "keep"]\n' +
      python("PauseSchedulerReqInput(BaseReq, kw_only=True)", 'mode: PauseMode = "abort"') +
      python("PauseSchedulerReqOutput(BaseReq, kw_only=True)", "success: bool", 'message: str = ""'),
    "PauseSchedulerReqInput: struct added: compatible",
    "PauseSchedulerReqOutput: struct added: compatible",
  ],
  [
    "424c55f7: tags and outcome",
    python("ReleaseMemoryOccupationReqInput(BaseReq)") + python("ReleaseMemoryOccupationReqOutput(BaseReq)"),
    python("ReleaseMemoryOccupationReqInput(BaseReq, kw_only=True)", "tags: list[str] | None = None") +
      python("ReleaseMemoryOccupationReqOutput(BaseReq, kw_only=True)", "success: bool = True", 'message: str = ""'),
    "ReleaseMemoryOccupationReqInput.tags: field appended with default: compatible",
    "ReleaseMemoryOccupationReqOutput.success: field appended with default: compatible",
    "ReleaseMemoryOccupationReqOutput.message: field appended with default: compatible",
  ],
  [
    "d7ea723a: the distributed update replaced",
    python(weights, "name: str", "dtype: str", "shape: list[int]"),
    "SIZE = 1024 * 1024 * 1024\n" +
      python(
        weights,
        "names: list[str]",
        "dtype_names: list[str]",
        "shapes: list[list[int]]",
        "packed: bool = False",
        "packed_buffer_size_bytes: int = SIZE",
        "packed_num_buffers: int = 2",
        'group_name: str = "weight_update_group"',
        "flush_cache: bool = True",
      ),
    ...["name", "dtype", "shape"].map((name) => `UpdateWeightsFromDistributedReqInput.${name}: field removed: ${requests}`),
    ...["names", "dtype_names", "shapes"].map((name) => `UpdateWeightsFromDistributedReqInput.${name}: field inserted: ${requests}`),
    ...["packed", "packed_buffer_size_bytes", "packed_num_buffers", "group_name", "flush_cache"].map(
      (name) => `UpdateWeightsFromDistributedReqInput.${name}: field appended with default: compatible`,
    ),
  ],
  [
    "d7ea723a: bytes become a list",
    python("UpdateWeightsFromTensorReqInput(BaseReq, kw_only=True)", "serialized_named_tensors: bytes"),
    python("UpdateWeightsFromTensorReqInput(BaseReq, kw_only=True)", "serialized_named_tensors: list[bytes]"),
    `UpdateWeightsFromTensorReqInput.serialized_named_tensors: type changed: ${requests}`,
  ],
  [
    "500a55ee: weight_version",
    python("UpdateWeightFromDiskReqInput(BaseReq, kw_only=True)", "model_path: str", "load_format: str | None = None"),
    python(
      "UpdateWeightFromDiskReqInput(BaseReq, kw_only=True)",
      "model_path: str",
      "load_format: str | None = None",
      "weight_version: str | None = None",
    ),
    "UpdateWeightFromDiskReqInput.weight_version: field appended with default: compatible",
  ],
  [
    "57b49061: dataclasses become structs",
    "@dataclass\nclass FlushCacheReqInput:\n    pass\n",
    python("FlushCacheReqInput(BaseReq, kw_only=True)"),
    "FlushCacheReqInput: struct added: compatible",
  ],
  [
    "57b49061: the base's fields come in front",
    python("FlushCacheReqOutput(msgspec.Struct, tag=True, array_like=True)", "success: bool"),
    python("FlushCacheReqOutput(BaseReq, kw_only=True)", "success: bool"),
    `FlushCacheReqOutput.rid: field inserted: ${replies}`,
    `FlushCacheReqOutput.http_worker_ipc: field inserted: ${replies}`,
  ],
  [
    "57b49061: keys of the internal state",
    python("GetInternalStateReqOutput(BaseReq, kw_only=True)", "internal_state: dict[Any, Any]"),
    python("GetInternalStateReqOutput(BaseReq, kw_only=True)", "internal_state: dict[str, Any]"),
    `GetInternalStateReqOutput.internal_state: type narrowed: ${replies}`,
  ],
  [
    "57b49061: an abort's own rid",
    python("AbortReq(msgspec.Struct, tag=True, array_like=True)", "rid: str"),
    python("AbortReq(BaseReq, kw_only=True)"),
    "AbortReq.http_worker_ipc: field appended with default: compatible",
    "AbortReq.rid: nullable added: compatible",
    "AbortReq.rid: type widened: compatible",
    "AbortReq.rid: default added: compatible",
  ],
  [
    "57b49061: an enum becomes a struct",
    "class ExpertDistributionReq(Enum):\n    START = 1\n",
    `class Type(Enum):\n    START = 1\n${python("ExpertDistributionReq(BaseReq, kw_only=True)", "action: Type")}`,
    "ExpertDistributionReq: struct added: compatible",
  ],
  [
    "04bc0864: engine_index",
    python(slim, "output_ids: list[list[int]]"),
    python(slim, "output_ids: list[list[int]]", "engine_index: int = 0"),
    "BatchTokenIDOutSlim.engine_index: field appended with default: compatible",
  ],
  [
    "eaf9e503: packed fields gone from the middle",
    python(
      weights,
      "names: list[str]",
      "packed: bool = False",
      "packed_buffer_size_bytes: int = 2 * 512",
      "packed_num_buffers: int = 2",
      'group_name: str = "g"',
      "flush_cache: bool = True",
    ),
    python(weights, "names: list[str]", 'group_name: str = "g"', "flush_cache: bool = True"),
    ...["packed", "packed_buffer_size_bytes", "packed_num_buffers"].map(
      (name) => `UpdateWeightsFromDistributedReqInput.${name}: field removed: ${requests}`,
    ),
  ],
  [
    "PR 1210: load columns",
    python(slim, "engine_index: int = 0"),
    python(slim, "engine_index: int = 0", "num_running: int = 0", "num_waiting: int = 0"),
    "BatchTokenIDOutSlim.num_running: field appended with default: compatible",
    "BatchTokenIDOutSlim.num_waiting: field appended with default: compatible",
  ],
  [
    "PR 1210: a snapshot, and requests gone",
    python("GetLoadReqInput(BaseReq)") + python("WatchLoadUpdateReq(BaseReq)"),
    python("LoadSnapshot(msgspec.Struct, frozen=True, tag=True, tag_field='_tag', array_like=True)", "epoch: str"),
    "LoadSnapshot: struct added: compatible",
    `GetLoadReqInput: struct removed: ${requests}`,
    `WatchLoadUpdateReq: struct removed: ${requests}`,
  ],
  [
    "later: weight_version required",
    python(weights, "flush_cache: bool = True", "weight_version: str | None = None"),
    python(weights, "flush_cache: bool = True", "weight_version: str | None"),
    `UpdateWeightsFromDistributedReqInput.weight_version: default removed: ${requests}`,
  ],
  [
    "later: mooncake",
    "",
    python("UpdateWeightsFromMooncakeReqInput(BaseReq, kw_only=True)", "version: int") +
      'SOURCES: frozenset[str] = frozenset({"mooncake"})\ndef version_of(*, version: int) -> str | None:\n    return None\n' +
      python("UpdateWeightsFromMooncakeReqOutput(BaseReq, kw_only=True)", "success: bool"),
    "UpdateWeightsFromMooncakeReqInput: struct added: compatible",
    "UpdateWeightsFromMooncakeReqOutput: struct added: compatible",
  ],
  [
    "later: a pin to a rank",
    python("TokenizedGenerateReqInput(BaseReq, kw_only=True)", "input_ids: list[int] | None = None"),
    python(
      "TokenizedGenerateReqInput(BaseReq, kw_only=True)",
      "input_ids: list[int] | None = None",
      "data_parallel_rank: int | None = None",
    ),
    "TokenizedGenerateReqInput.data_parallel_rank: field appended with default: compatible",
  ],
  [
    "crates 0.1.0: a checkpoint's flush",
    python("UpdateWeightFromDiskReqInput(BaseReq, kw_only=True)", "weight_version: str | None = None"),
    python("UpdateWeightFromDiskReqInput(BaseReq, kw_only=True)", "weight_version: str | None = None", "flush_cache: bool = True"),
    "UpdateWeightFromDiskReqInput.flush_cache: field appended with default: compatible",
  ],
  [
    "crates 0.1.0: nine columns",
    python(slim, "kv_total_pages: int = 0"),
    python(slim, "kv_total_pages: int = 0", "finish_reason_details: list = []", "spec_verify_ct: list[int] = []"),
    "BatchTokenIDOutSlim.finish_reason_details: field appended with default: compatible",
    "BatchTokenIDOutSlim.spec_verify_ct: field appended with default: compatible",
  ],
];
