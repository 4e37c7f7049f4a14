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
import { changes } from "./compare-changes.ts";
import { history } from "./compare-history.ts";
import { python, request } from "./compare-text.ts";
import { readText } from "./python-text.ts";
import { protocolOf, small } from "./small-schema.ts";
import { besides, wheelFile } from "./wheel.ts";

const cases = [...changes, ...history];

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
  const wheel = readPython(wheelFile("io_struct.py"), besides.map(wheelFile));
  const schema = readSchema(tokenspeed);

  test("differs in exactly what is known to differ", () => {
    const { changes, notInSchema, notCompared } = compare(wheel, schema);
    const appended = (struct: string, field: string, after: string) => ({ struct, field, kind: "field appended with default", after });
    const batch = (field: string, type: string) => appended("BatchTokenIDOutSlim", field, `${type} = []`);
    expect(changes).toMatchObject([
      appended("UpdateWeightFromDiskReqInput", "flush_cache", "bool = True"),
      batch("finish_reason_details", "list[dict[str, Any] | None]"),
      batch("spec_verify_ct", "list[i64]"),
      batch("accept_draft_tokens", "list[float | None]"),
      batch("input_token_logprobs_val", "list[list[float | None]]"),
      batch("input_token_logprobs_idx", "list[list[i32]]"),
      batch("input_top_logprobs_val", "list[list[list[float] | None]]"),
      batch("input_top_logprobs_idx", "list[list[list[i32] | None]]"),
      batch("output_top_logprobs_val", "list[list[list[float]]]"),
      batch("output_top_logprobs_idx", "list[list[list[i32]]]"),
    ]);
    expect(new Set(changes.map((change) => change.class))).toEqual(new Set(["compatible"]));
    // the 18 that section 8 names
    expect([...notInSchema].sort()).toEqual(
      `AbortReq BatchEmbeddingOut BatchStrOut BatchTokenIDOut BlockReqInput CloseSessionReqInput ConfigureLoggingReq
      GetLoadReqOutput GetWeightsByNameReqInput GetWeightsByNameReqOutput HealthCheckOutput LoadSnapshot OpenSessionReqInput OpenSessionReqOutput
      PickleWrapper RpcReqInput RpcReqOutput TokenizedEmbeddingReqInput`.split(/\s+/),
    );
    expect(notCompared.map(({ name }) => name)).toEqual(["ControlCallSlim", "ControlReplySlim"]);
  });

  test("handshake structs are compared once their file is given", () => {
    const alone = compare(readPython(wheelFile("io_struct.py")), schema);
    expect(alone.notCompared.filter(({ file }) => file === "zmq_wire.py")).toHaveLength(4);
    expect(changedWith("zmq_wire.py", "world_size: int = 1", "world_size: int = 2")).toEqual([
      "EngineCoreReadyResponse.world_size default changed",
    ]);
  });

  /** What differs once one of the files says something else, besides what is known to differ. */
  function changedWith(name: string, from: string, to: string): string[] {
    const text = Buffer.from(wheelFile(name).bytes).toString();
    expect(text).toContain(from);
    const bytes = Buffer.from(text.replace(from, to));
    const files = besides.map((other) => (other === name ? { file: `src/${name}`, bytes } : wheelFile(other)));
    const known = compare(schema, wheel).changes.length;
    const { changes } = compare(schema, readPython(wheelFile("io_struct.py"), files));
    expect(changes).toHaveLength(known + 1);
    return changes.filter(({ kind }) => kind !== "last field removed").map(({ struct, field: name, kind }) => `${struct}.${name} ${kind}`);
  }

  test("types of the engine that are imported are compared by name until their file is given", () => {
    const alone = compare(readPython(wheelFile("io_struct.py")), schema);
    expect(alone.changes).toEqual(compare(wheel, schema).changes);
    expect(alone.notCompared.map(({ name, file }) => `${name} ${file}`).slice(4, 9)).toEqual([
      "SamplingParams sampling_params.py",
      "MultimodalInputs inputs.py",
      "MultimodalDataItem inputs.py",
      "ShmTensorHandle shm_transport.py",
      "EncodeRequest encode_worker.py",
    ]);
  });

  test.each([
    [
      "a set is not a list",
      "sampling_params.py",
      "stop_token_ids: set[int]",
      "stop_token_ids: list[int]",
      "SamplingParams.stop_token_ids type widened",
    ],
    [
      "a tensor is not bytes",
      "inputs.py",
      "encoded: torch.Tensor | None",
      "encoded: bytes | None",
      "MultimodalDataItem.encoded type changed",
    ],
    ["an enum is its values", "inputs.py", "    AUDIO = auto()", "    AUDIO = 4", "MultimodalDataItem.modality type changed"],
    [
      "a tuple of a length is not any",
      "shm_transport.py",
      "shape: tuple[int, ...]",
      "shape: tuple[int, int]",
      "ShmTensorHandle.shape type narrowed",
    ],
    ["a dtype is its name", "shm_transport.py", "dtype: torch.dtype", "dtype: int", "ShmTensorHandle.dtype type changed"],
    [
      "a request of another process",
      "encode_worker.py",
      "bootstrap_port: int",
      "bootstrap_port: str",
      "EncodeRequest.bootstrap_port type changed",
    ],
  ])("%s", (_, name, from, to, change) => {
    expect(changedWith(name, from, to)).toEqual([change]);
  });

  test("a release that was recorded without a file is still compared", () => {
    const partial = recordRelease(readPython(wheelFile("io_struct.py")), schema, {
      protocol: "tokenspeed",
      release: "0.1.1",
      source: "one file",
    });
    expect(partial.structs.map(({ name }) => name)).not.toContain("SamplingParams");
    expect(compare(readRelease(partial), wheel).changes.filter(({ kind }) => kind !== "struct added")).toEqual([]);
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

  test("leaves in generated operations who would misread their requests", () => {
    const older = releases.map((release) => ({
      ...release,
      structs: release.structs.map((struct) =>
        struct.name === "PauseSchedulerReqInput" ? { ...struct, fields: ["reason: str", ...struct.fields] } : struct,
      ),
    }));
    const misread = buildModel({ ...tokenspeed, releases: older.slice(1) }).operations.filter(({ misreadBy }) => misreadBy !== undefined);
    expect(misread.map(({ name, misreadBy, lacks }) => [name, misreadBy, lacks])).toEqual([["pauseScheduler", ["0.1.1"], undefined]]);
  });

  test("is compared in under a second", () => {
    const start = performance.now();
    compare(readPython(wheelFile("io_struct.py")), schema);
    expect(performance.now() - start).toBeLessThan(1000);
  });

  test("is printed as a table and as JSON", () => {
    const difference = compare(wheel, schema);
    const text = printDifference(difference, 120);
    expect(text.split("\n").every((line) => line.startsWith("not ") || line.length <= 120)).toBe(true);
    expect(text).toContain(".flush_cache");
    expect(text).toContain("not in the schema, left out on purpose: PickleWrapper, ");
    expect(text).toMatch(/\n10 changes: 10 compatible$/);
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
