import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { buildModel } from "../../codegen/model.ts";
import { compare } from "../../codegen/sync/compare.ts";
import { exitCodeOf, printDifference, printJson } from "../../codegen/sync/print.ts";
import { readPython } from "../../codegen/sync/read-python.ts";
import { readRelease, recordRelease } from "../../codegen/sync/read-release.ts";
import { readSchema } from "../../codegen/sync/read-schema.ts";
import { field, i32, i64, list, literal, nullable, str, u64 } from "../../schema/dsl.ts";
import { tokenspeed } from "../../schema/tokenspeed/index.ts";
import { releases } from "../../schema/tokenspeed/releases/index.ts";
import { readText } from "./python-text.ts";
import { protocolOf, small } from "./small-schema.ts";

/** A struct of one name with a body, one field or line a string. */
function python(header: string, ...lines: string[]): string {
  return `class ${header}:\n${(lines.length === 0 ? ["pass"] : lines).map((line) => `    ${line}\n`).join("")}`;
}

const request = (...lines: string[]) => python("ReqInput(BaseReq, kw_only=True)", ...lines);
const reply = (...lines: string[]) => python("ReqOutput(BaseReq, kw_only=True)", ...lines);
const map = (...lines: string[]) => python("Info(msgspec.Struct, kw_only=True)", ...lines);
const imported = "from elsewhere import SamplingParams, MultimodalInputs\n";
const mode = 'Mode = Literal["abort", "wait"]\n';
const weights = "UpdateWeightsFromDistributedReqInput(BaseReq, kw_only=True)";
const slim = "BatchTokenIDOutSlim(BaseReq, kw_only=True)";

type Case = readonly [what: string, before: string, after: string, ...changes: string[]];
const requests = "breaking for requests";
const replies = "breaking for replies";
const both = "breaking for requests and replies";

// what changed, before, after, and the changes in the words of the tool: place: kind: class
const cases: readonly Case[] = [
  ["nothing", request("x: int = 1"), request("x: int = 1")],
  ["the spelling of types", request("x: t.Optional[t.List[str]]", "y: int | str"), request("x: list[str] | None", "y: str | int")],
  ["the spelling of defaults", request("x: int = 1024", "y: float = 1.0"), request("x: int = 2 ** 10", "y: float = 1")],
  ["an alias in place of a type", request('m: Literal["abort", "wait"]'), mode + request("m: Mode")],
  ["an enum in place of its values", request("k: Literal[1, 2]"), `class K(Enum):\n    A = 1\n    B = 2\n${request("k: K")}`],
  ["methods", request("x: int"), request("x: int", "def f(self): return 2")],
  ["options that are not on the wire", request("x: int"), python("ReqInput(BaseReq, kw_only=True, frozen=True)", "x: int")],

  [
    "a field appended with a default, in a request",
    request("x: int"),
    request("x: int", "y: int = 0"),
    "ReqInput.y: field appended with default: compatible",
  ],
  [
    "a field appended with a default, in a reply",
    reply("x: int"),
    reply("x: int", "y: list[int] = []"),
    "ReqOutput.y: field appended with default: compatible",
  ],
  [
    "two fields appended",
    reply("x: int"),
    reply("x: int", "y: int = 0", "z: int"),
    "ReqOutput.y: field appended with default: compatible",
    `ReqOutput.z: field appended without default: ${replies}`,
  ],
  [
    "a field appended without a default, in a request",
    request("x: int"),
    request("x: int", "y: int | None"),
    `ReqInput.y: field appended without default: ${requests}`,
  ],
  ["a field appended without a default, in a reply", reply(), reply("y: int"), `ReqOutput.y: field appended without default: ${replies}`],
  ["a field added to a map with a default", map("x: int"), map("y: int = 0", "x: int"), "Info.y: field appended with default: compatible"],
  ["a field added to a map without a default", map("x: int"), map("x: int", "y: int"), `Info.y: field appended without default: ${both}`],
  ["a field inserted, in a request", request("x: int"), request("y: int = 0", "x: int"), `ReqInput.y: field inserted: ${requests}`],
  [
    "a field inserted, in a reply",
    reply("x: int", "z: int"),
    reply("x: int", "y: str = ''", "z: int"),
    `ReqOutput.y: field inserted: ${replies}`,
  ],
  [
    "a field in the base",
    `class B(BaseReq, kw_only=True):\n    b: int = 0\n${python("AReqInput(BaseReq, kw_only=True)", "x: int")}`,
    `class B(BaseReq, kw_only=True):\n    b: int = 0\n${python("AReqInput(B, kw_only=True)", "x: int")}`,
    `AReqInput.b: field inserted: ${requests}`,
  ],
  [
    "a field removed from the middle",
    request("x: int", "y: int = 0", "z: int"),
    request("x: int", "z: int"),
    `ReqInput.y: field removed: ${requests}`,
  ],
  [
    "a field removed from the middle of a reply",
    reply("x: int", "y: int", "z: str"),
    reply("x: int", "z: str"),
    `ReqOutput.y: field removed: ${replies}`,
  ],
  [
    "the last field removed, with a default",
    request("x: int", "y: int = 0"),
    request("x: int"),
    "ReqInput.y: last field removed: compatible",
  ],
  ["the last field removed, without a default", reply("x: int", "y: int"), reply("x: int"), `ReqOutput.y: last field removed: ${replies}`],
  ["a field removed from a map, with a default", map("y: int = 0", "x: int"), map("x: int"), "Info.y: last field removed: compatible"],
  ["a field removed from a map, without a default", map("y: int", "x: int"), map("x: int"), `Info.y: last field removed: ${both}`],
  [
    "a field that takes another's place",
    request("x: int", "y: int"),
    request("x: int", "z: str"),
    `ReqInput.y: field removed: ${requests}`,
    `ReqInput.z: field inserted: ${requests}`,
  ],
  ["fields reordered", request("x: int", "y: str"), request("y: str", "x: int"), `ReqInput: fields reordered: ${requests}`],
  [
    "fields reordered by a keyword-only class",
    python("AReqOutput(msgspec.Struct, array_like=True)", "x: int", "y: int = 0"),
    `class B(msgspec.Struct, array_like=True, kw_only=True):\n    x: int\n${python("AReqOutput(B)", "y: int = 0")}`,
    `AReqOutput: fields reordered: ${replies}`,
  ],
  ["keys reordered", map("x: int", "y: str"), map("y: str", "x: int"), "Info: fields reordered: documentation"],
  [
    "a field renamed",
    request("x: int", "size: int = 3", "z: str"),
    request("x: int", "length: int = 3", "z: str"),
    "ReqInput.length: field renamed (probably): compatible",
  ],
  ["a key renamed", map("x: int", "size: int = 3"), map("x: int", "length: int = 3"), `Info.length: field renamed (probably): ${both}`],
  ["a key renamed on the wire alone", map("x: int"), map("x: int = msgspec.field(name='y')"), `Info.y: field renamed (probably): ${both}`],
  [
    "a field renamed and of another type",
    request("size: int"),
    request("sizes: list[int]"),
    `ReqInput.size: field removed: ${requests}`,
    `ReqInput.sizes: field inserted: ${requests}`,
  ],

  ["a wider type in a request", request("x: int"), request("x: int | str"), "ReqInput.x: type widened: compatible"],
  ["a wider type in a reply", reply("x: int"), reply("x: int | str"), `ReqOutput.x: type widened: ${replies}`],
  ["an integer that becomes a float", request("x: int"), request("x: float"), "ReqInput.x: type widened: compatible"],
  [
    "a literal with one value more",
    mode + request("m: Mode"),
    request('m: Literal["abort", "wait", "keep"]'),
    "ReqInput.m: type widened: compatible",
  ],
  ["a literal with one value more, in a reply", reply("m: Literal[1]"), reply("m: Literal[1, 2]"), `ReqOutput.m: type widened: ${replies}`],
  ["a literal that becomes any text", mode + request("m: Mode"), request("m: str"), "ReqInput.m: type widened: compatible"],
  ["a narrower type in a request", request("x: int | str"), request("x: int"), `ReqInput.x: type narrowed: ${requests}`],
  ["a narrower type in a reply", reply("x: float"), reply("x: int"), `ReqOutput.x: type narrowed: ${replies}`],
  [
    "a literal with one value less",
    request('m: Literal["a", "b"] = "a"'),
    request('m: Literal["a"] = "a"'),
    `ReqInput.m: type narrowed: ${requests}`,
  ],
  ["a list of a narrower type", request("x: list"), request("x: list[int]"), `ReqInput.x: type narrowed: ${requests}`],
  ["another type", request("x: int"), request("x: str"), `ReqInput.x: type changed: ${requests}`],
  ["another item of a map", reply("x: dict[str, int]"), reply("x: dict[str, str]"), `ReqOutput.x: type changed: ${replies}`],
  ["a set where a list was", request("x: list[int]"), request("x: set[int]"), `ReqInput.x: type narrowed: ${requests}`],
  ["a tuple of another length", request("x: tuple[int, int]"), request("x: tuple[int, int, int]"), `ReqInput.x: type changed: ${requests}`],
  ["nullable", request("x: int"), request("x: int | None"), "ReqInput.x: nullable added: compatible"],
  ["nullable, in a reply", reply("x: int"), reply("x: int | None"), `ReqOutput.x: nullable added: ${replies}`],
  ["no longer nullable", request("x: int | None"), request("x: int"), `ReqInput.x: nullable removed: ${requests}`],
  [
    "nullable and wider",
    request("x: int"),
    request("x: float | None"),
    "ReqInput.x: nullable added: compatible",
    "ReqInput.x: type widened: compatible",
  ],
  ["any where it was nullable", request("x: int | None"), request("x: Any"), "ReqInput.x: type widened: compatible"],
  ["another default", request("x: int = 1"), request("x: int = 2"), "ReqInput.x: default changed: compatible"],
  ["a default for a required field", request("x: int"), request("x: int = 2"), "ReqInput.x: default added: compatible"],
  ["no default any more", request("x: int = 2"), request("x: int"), `ReqInput.x: default removed: ${requests}`],
  ["no default any more, in a reply", reply("x: int = 2"), reply("x: int"), `ReqOutput.x: default removed: ${replies}`],

  ["a struct added", "", request("x: int"), "ReqInput: struct added: compatible"],
  ["a request removed", request("x: int"), "", `ReqInput: struct removed: ${requests}`],
  ["a reply removed", reply("x: int"), "", `ReqOutput: struct removed: ${replies}`],
  [
    "a tagged struct renamed",
    python("PauseReqInput(BaseReq, kw_only=True)", "x: int", "y: str"),
    python("PauseSchedulerReqInput(BaseReq, kw_only=True)", "x: int", "y: str"),
    `PauseSchedulerReqInput: struct renamed (probably): ${requests}`,
  ],
  [
    "an untagged struct renamed",
    python("WireInfo(msgspec.Struct)", "x: int"),
    python("ServerInfo(msgspec.Struct)", "x: int"),
    "ServerInfo: struct renamed (probably): compatible",
  ],
  [
    "structs of other names with the same fields",
    python("OpenReqInput(BaseReq, kw_only=True)", "x: int"),
    python("CloseReqInput(BaseReq, kw_only=True)", "x: int"),
    "CloseReqInput: struct added: compatible",
    `OpenReqInput: struct removed: ${requests}`,
  ],
  [
    "a tag",
    python("AReqInput(msgspec.Struct, array_like=True)", "x: int"),
    python("AReqInput(msgspec.Struct, array_like=True, tag=True)", "x: int"),
    `AReqInput: tag changed: ${requests}`,
  ],
  ["another tag", python("AReqInput(BaseReq, tag='a')"), python("AReqInput(BaseReq, tag='b')"), `AReqInput: tag changed: ${requests}`],
  [
    "another layout",
    python("Info(msgspec.Struct)", "x: int"),
    python("Info(msgspec.Struct, array_like=True)", "x: int"),
    `Info: layout changed: ${both}`,
  ],
  [
    "a struct that only requests hold",
    python("Part(msgspec.Struct)", "x: int") + request("p: Part"),
    python("Part(msgspec.Struct)", "x: str") + request("p: Part"),
    `Part.x: type changed: ${requests}`,
  ],
  [
    "a struct that both hold",
    python("Part(msgspec.Struct)", "x: int") + request("p: Part") + reply("p: Part"),
    python("Part(msgspec.Struct)", "x: str") + request("p: Part") + reply("p: Part"),
    `Part.x: type changed: ${both}`,
  ],
  ["a comment", request("# One.", "x: int"), request("# Two.", "x: int"), "ReqInput.x: documentation changed: documentation"],
  ["a docstring", request("'''One.'''", "x: int"), request("'''Two.'''", "x: int"), "ReqInput: documentation changed: documentation"],

  // history, commit by commit (section 5 of wire/tokenspeed.md)
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

function changesOf(before: string, after: string): string[] {
  const own = ({ changes }: ReturnType<typeof compare>) => changes.filter(({ struct }) => struct !== "BaseReq");
  return own(compare(readText(before), readText(after))).map(
    ({ struct, field: name, kind, class: judged, probably }) =>
      `${struct}${name === undefined ? "" : `.${name}`}: ${kind}${probably === true ? " (probably)" : ""}: ${judged}`,
  );
}

describe("a change of Python text", () => {
  test("has enough cases", () => {
    expect(cases.length).toBeGreaterThan(80);
  });

  test.each(cases)("%s", (_, before, after, ...changes) => {
    expect(changesOf(before, after)).toEqual(changes);
  });

  test.each(cases)("%s: every change has a sentence for peers of both ages", (_, before, after) => {
    for (const { meaning } of compare(readText(before), readText(after)).changes) expect(meaning).toMatch(/^[A-Z].{20,}\.$/);
  });
});

describe("the 0.1.1 wheel against the schema", () => {
  const file = (name: string) => ({ file: name, bytes: readFileSync(new URL(`../vectors/wheel-0.1.1/${name}`, import.meta.url)) });
  const wheel = readPython(file("io_struct.py"), [file("zmq_wire.py")]);
  const schema = readSchema(tokenspeed);

  test("differs in exactly what is known to differ", () => {
    const { changes, notInSchema, notCompared } = compare(wheel, schema);
    expect(changes).toMatchObject([
      {
        struct: "UpdateWeightFromDiskReqInput",
        field: "flush_cache",
        kind: "field appended with default",
        class: "compatible",
        after: "bool = True",
      },
    ]);
    // the 18 that section 8 names, and the data plane
    expect([...notInSchema].sort()).toEqual(
      `AbortReq BatchEmbeddingOut BatchStrOut BatchTokenIDOut BatchTokenIDOutSlim BlockReqInput CloseSessionReqInput ConfigureLoggingReq
      GetLoadReqOutput GetWeightsByNameReqInput GetWeightsByNameReqOutput HealthCheckOutput LoadSnapshot OpenSessionReqInput OpenSessionReqOutput
      PickleWrapper RpcReqInput RpcReqOutput SessionParams TokenizedEmbeddingReqInput TokenizedGenerateReqInput`.split(/\s+/),
    );
    expect(notCompared.map(({ name }) => name)).toEqual(["ControlCallSlim", "ControlReplySlim"]);
  });

  test("handshake structs are compared once their file is given", () => {
    const alone = compare(readPython(file("io_struct.py")), schema);
    expect(alone.notCompared.filter(({ file: from }) => from === "zmq_wire.py")).toHaveLength(4);
    const bytes = Buffer.from(file("zmq_wire.py").bytes.toString().replace("world_size: int = 1", "world_size: int = 2"));
    const { changes } = compare(schema, readPython(file("io_struct.py"), [{ file: "src/zmq_wire.py", bytes }]));
    expect(changes.map(({ struct, field: name, kind }) => `${struct}.${name} ${kind}`)).toEqual([
      "UpdateWeightFromDiskReqInput.flush_cache last field removed",
      "EngineCoreReadyResponse.world_size default changed",
    ]);
  });

  test("is what is recorded as release 0.1.1, and the schema is release 0.1.0", () => {
    const [first, second] = releases;
    if (first === undefined || second === undefined) throw new Error("no releases");
    expect(second).toEqual(recordRelease(wheel, schema, second));
    expect(compare(readRelease(second), wheel)).toMatchObject({ changes: [] });
    expect(first.release).toBe(tokenspeed.release);
    expect(first).toEqual(recordRelease(schema, schema, first));
    expect(compare(readRelease(first), schema).changes).toEqual([]);
    expect(readRelease(first).structs).toHaveLength(schema.structs.length);
  });

  test("leaves in generated operations what its requests lack", () => {
    const lacking = buildModel(tokenspeed).operations.filter(({ lacks }) => lacks !== undefined);
    expect(lacking.map(({ name, lacks }) => [name, lacks])).toEqual([["updateWeightFromDisk", { "0.1.1": ["flushCache"] }]]);
  });

  test("is compared in under a second", () => {
    const start = performance.now();
    compare(readPython(file("io_struct.py")), schema);
    expect(performance.now() - start).toBeLessThan(1000);
  });

  test("is printed as a table and as JSON", () => {
    const difference = compare(wheel, schema);
    const text = printDifference(difference, 120);
    expect(text.split("\n").every((line) => line.startsWith("not ") || line.length <= 120)).toBe(true);
    expect(text).toContain(".flush_cache");
    expect(text).toContain("not in the schema, left out on purpose: PickleWrapper, ");
    expect(text).toMatch(/\n1 change: 1 compatible$/);
    expect(JSON.parse(printJson(difference))).toEqual(JSON.parse(JSON.stringify(difference)));
    expect(printDifference(compare(schema, schema), 80)).toBe("the schema and the schema say the same");
  });
});

test("ranges are compared where both sources give them", () => {
  const of = (type: Parameters<typeof field>[1]) => readSchema(protocolOf([small("Info", [field("x", type, { doc: "An x." })])]));
  const kinds = (before: Parameters<typeof field>[1], after: Parameters<typeof field>[1]) =>
    compare(of(before), of(after)).changes.map(({ kind }) => kind);
  expect(kinds(i32, i64)).toEqual(["type widened"]);
  expect(kinds(list(i64), list(i32))).toEqual(["type narrowed"]);
  expect(kinds(i64, u64)).toEqual(["type changed"]);
  expect(kinds(literal(1), nullable(i32))).toEqual(["nullable added", "type widened"]);
  expect(kinds(str, str)).toEqual([]);
  expect(compare(readText(python("Info(msgspec.Struct)", "x: int")), of(i32)).changes.filter(({ struct }) => struct === "Info")).toEqual(
    [],
  );
});

test("the exit code is that of the worst change", () => {
  const code = (before: string, after: string) => exitCodeOf(compare(readText(before), readText(after)));
  expect(code(request("x: int"), request("x: int"))).toBe(0);
  expect(code(request("# a", "x: int"), request("# b", "x: int"))).toBe(0);
  expect(code(request("x: int"), request("x: int", "y: int = 0"))).toBe(1);
  expect(code(request("x: int"), request("x: str", "y: int = 0"))).toBe(2);
});
