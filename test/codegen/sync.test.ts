import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { afterAll, expect, test } from "vitest";
import { generate } from "../../codegen/generate.ts";
import { openSchema } from "../../codegen/sync/load-schema.ts";
import type { PythonFile } from "../../codegen/sync/read-python.ts";
import { type Synchronized, synchronize } from "../../codegen/sync/sync.ts";
import { checkProtocol } from "../../schema/check.ts";
import type { Messages } from "../vectors/message.ts";
import type { Noted, Vector } from "../vectors/notation.ts";
import { type Report, runCanonical, runLenient, runReject } from "../vectors/run.ts";
import { besides, wheelFile } from "./wheel.ts";

const repository = join(import.meta.dirname, "../..");
const wheel = await readFile(join(repository, "test/vectors/wheel-0.1.1/io_struct.py"), "utf8");
// the wheel's file as release 0.1.0 would have it: what the schema says
const current = wheel
  .replace(
    "    # Optional: update the weight version after a successful load.\n    weight_version: str | None = None\n",
    (text) => `${text}    flush_cache: bool = True\n`,
  )
  .replace(
    "    kv_total_pages: int = 0\n\n    @classmethod\n",
    (text) => `    kv_total_pages: int = 0
    finish_reason_details: list[dict[str, Any] | None] = []
    spec_verify_ct: list[int] = []
    accept_draft_tokens: list[float | None] = []
    input_token_logprobs_val: list[list[float | None]] = []
    input_token_logprobs_idx: list[list[int]] = []
    input_top_logprobs_val: list[list[list[float] | None]] = []
    input_top_logprobs_idx: list[list[list[int] | None]] = []
    output_top_logprobs_val: list[list[list[float]]] = []
    output_top_logprobs_idx: list[list[list[int]]] = []
${text.slice(text.indexOf("\n") + 1)}`,
  );
const folders: string[] = [];

afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))));

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "enginewire-sync-"));
  folders.push(folder);
  return folder;
}

function syncInto(folder: string, text: string, also: readonly PythonFile[] = []): Synchronized {
  return synchronize({
    main: { file: "io_struct.py", bytes: new TextEncoder().encode(text) },
    also,
    folder,
    protocol: "fork",
    constructors: "enginewire/schema",
  });
}

async function write(files: ReadonlyMap<string, string>): Promise<void> {
  for (const [path, text] of files) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
}

async function copyOfSchema(): Promise<string> {
  const folder = join(await temporaryFolder(), "tokenspeed");
  await cp(join(repository, "schema/tokenspeed"), folder, { recursive: true });
  return folder;
}

/** The lines that differ between two texts, found by taking equal ones away from both ends. */
function changedLines(before: string, after: string): string[] {
  const [old, now] = [before.split("\n"), after.split("\n")];
  while (old.length > 0 && now.length > 0 && old[0] === now[0]) {
    old.shift();
    now.shift();
  }
  while (old.length > 0 && now.length > 0 && old.at(-1) === now.at(-1)) {
    old.pop();
    now.pop();
  }
  return [...old.map((line) => `- ${line.trim()}`), ...now.map((line) => `+ ${line.trim()}`)];
}

test("a file that says what the schema says changes nothing", () => {
  expect(current).not.toBe(wheel);
  const result = syncInto(join(repository, "schema/tokenspeed"), current);
  expect([...result.files.keys()]).toEqual([]);
  expect(result).toMatchObject({ kept: [], added: { structs: [], operations: [], leftOut: [] }, difference: { changes: [] } });
  // nor do the files with tensors, sets, and messages of other processes
  const all = syncInto(join(repository, "schema/tokenspeed"), current, besides.map(wheelFile));
  expect([...all.files.keys()]).toEqual([]);
  expect(all).toMatchObject({ kept: [], added: { structs: [], operations: [], leftOut: [] }, difference: { changes: [] } });
  expect(all.difference.notCompared.map(({ name }) => name)).toEqual(["ControlCallSlim", "ControlReplySlim"]);
});

const pause =
  'class PauseSchedulerReqInput(BaseReq, kw_only=True):\n    # See PauseMode for how each mode treats in-flight requests.\n    mode: PauseMode = "abort"\n';
const init = '    # The backend\n    backend: str = "nccl"\n';

// what changes in the engine's source, from, to, and the lines of the schema that differ
const edits: readonly (readonly [what: string, from: string, to: string, file: string, lines: readonly string[]])[] = [
  [
    "a field appended, with its comment as documentation",
    pause,
    `${pause}    # How long to wait, in seconds.\n    wait_s: float | None = None\n`,
    "scheduler.ts",
    ['+ field("wait_s", nullable(f64), { default: null, doc: "How long to wait, in seconds." }),'],
  ],
  ["a default", pause, pause.replace('= "abort"', '= "wait"'), "scheduler.ts", ['- default: "abort",', '+ default: "wait",']],
  [
    "no default any more",
    init,
    init.replace(' = "nccl"', ""),
    "weights.ts",
    [
      '- field("backend", str, { default: "nccl", doc: "Collective backend." }),',
      '+ field("backend", str, { doc: "Collective backend." }),',
    ],
  ],
  [
    "a type",
    init,
    init.replace("str =", "str | None ="),
    "weights.ts",
    [
      '- field("backend", str, { default: "nccl", doc: "Collective backend." }),',
      '+ field("backend", nullable(str), { default: "nccl", doc: "Collective backend." }),',
    ],
  ],
  [
    "a name",
    init,
    init.replace("backend:", "collective:"),
    "weights.ts",
    [
      '- field("backend", str, { default: "nccl", doc: "Collective backend." }),',
      '+ field("collective", str, { default: "nccl", doc: "Collective backend." }),',
    ],
  ],
  [
    "a default where there was none",
    "    type: ProfileReqType\n",
    "    type: ProfileReqType = ProfileReqType.START_PROFILE\n",
    "profile.ts",
    [
      '- field("kind", literal(1, 2), { python: "type", doc: "`PROFILE_START` (1) or `PROFILE_STOP` (2)." }),',
      '+ field("kind", literal(1, 2), { default: 1, python: "type", doc: "`PROFILE_START` (1) or `PROFILE_STOP` (2)." }),',
    ],
  ],
  [
    "a field of the base",
    "    http_worker_ipc: str | None = None\n",
    "    http_worker_ipc: str | None = None\n    trace: int = 0\n",
    "base.ts",
    ['+ field("trace", i64, { default: 0, doc: "`trace` of the engine, which has no documentation there." }),'],
  ],
  [
    "a field that others share stays shared there",
    "class ReleaseMemoryOccupationReqOutput(BaseReq, kw_only=True):\n    success: bool = True\n",
    "class ReleaseMemoryOccupationReqOutput(BaseReq, kw_only=True):\n    success: bool = False\n",
    "memory.ts",
    [
      "- fields: outcome,",
      "+ fields: [",
      '+ field("success", bool, { default: false, doc: "Whether the operation took effect." }),',
      '+ field("message", str, { default: "", doc: "Why not; empty on success." }),',
      "+ ],",
    ],
  ],
  [
    "a layout's option",
    "class FlushCacheReqInput(BaseReq, kw_only=True):",
    "class FlushCacheReqInput(BaseReq, kw_only=True, tag=False, array_like=False):",
    "scheduler.ts",
    ['- layout: "array",', "- tagged: true,", '+ layout: "map",'],
  ],
];

test.each(edits)("%s is edited, and all else left as it is", async (_, from, to, file, lines) => {
  const folder = await copyOfSchema();
  const text = current.replace(from, to);
  expect(text).not.toBe(current);
  const { files } = syncInto(folder, text);
  expect([...files.keys()].map((path) => path.slice(folder.length + 1))).toEqual([file]);
  const before = await readFile(join(folder, file), "utf8");
  // imports may have grown
  const body = (whole: string) => whole.replace(/^import .*\n/gm, "");
  expect(changedLines(body(before), body(files.get(join(folder, file)) ?? ""))).toEqual(lines);
  await write(files);
  expect([...syncInto(folder, text).files.keys()]).toEqual([]);
});

test("a new pair of structs becomes an operation that is refused until a person has decided", async () => {
  const folder = await copyOfSchema();
  const text = `${current}\n\nclass SetPriorityReqInput(BaseReq, kw_only=True):\n    """Change priorities."""\n    priority: int\n\n\nclass SetPriorityReqOutput(BaseReq, kw_only=True):\n    success: bool\n\n\nclass Note(msgspec.Struct):\n    text: str = ""\n`;
  const { files, added } = syncInto(folder, text);
  expect(added).toEqual({ structs: ["SetPriorityReqInput", "SetPriorityReqOutput", "Note"], operations: ["setPriority"], leftOut: [] });
  expect([...files.keys()].map((path) => path.slice(folder.length + 1)).sort()).toEqual(["added.ts", "index.ts"]);
  expect(files.get(join(folder, "added.ts"))).toContain(
    '  doc: "Change priorities.",\n  layout: "array",\n  tagged: true,\n  extends: BaseReq,\n',
  );
  await write(files);
  const { protocol } = openSchema(folder);
  expect(protocol.operations.at(-1)?.name).toBe("setPriority");
  expect(protocol.structs.at(-1)?.name).toBe("Note");
  expect(() => checkProtocol(protocol)).toThrow("tokenspeed.operations.setPriority.effect: a person has to decide: what it acts on");
  expect([...syncInto(folder, text).files.keys()]).toEqual([]);
});

test("what cannot be said is left out by name, and what is gone is kept", async () => {
  const folder = await copyOfSchema();
  const text = `${current.replace(/class IsSleepingReqInput[\s\S]*?class AbortReq/, "class AbortReq")}\n\nclass Outer(msgspec.Struct):\n    held: "Holder"\n\n\nclass Odd(msgspec.Struct):\n    x: dict[int, int]\n\n\nclass Holder(msgspec.Struct):\n    odd: Odd\n`;
  const { files, added, kept } = syncInto(folder, text);
  expect(added.leftOut).toEqual([
    { name: "Odd", because: "the type dict[int, int] cannot be said in a schema" },
    { name: "Holder", because: "it holds Odd, which is left out" },
    { name: "Outer", because: "it holds Holder, which is left out" },
  ]);
  expect(kept).toEqual(["IsSleepingReqInput", "IsSleepingReqOutput"]);
  await write(files);
  expect(openSchema(folder).protocol.leavesOut?.slice(-3)).toEqual(["Odd", "Holder", "Outer"]);
  expect([...syncInto(folder, text).files.keys()]).toEqual([]);
});

test("a change that cannot be said is refused", async () => {
  const folder = await copyOfSchema();
  expect(() => syncInto(folder, current.replace(init, init.replace("str =", "str | int =")))).toThrow(
    "the type str | int cannot be said in a schema",
  );
  expect(() =>
    syncInto(folder, current.replace("class FlushCacheReqInput(BaseReq,", 'class FlushCacheReqInput(BaseReq, tag="flush",')),
  ).toThrow("FlushCacheReqInput: a schema cannot say a tag that is not the class's name");
  // `kind` has its name in the source written beside it, which only a person knows to be wrong now
  const renamed = current.replace("    type: ProfileReqType\n", "    action: ProfileReqType\n");
  expect(() => syncInto(folder, renamed)).toThrow(
    /^ProfileReq\.action: field renamed, which cannot be edited here; edit the schema by hand$/,
  );
});

/** What a person decides about operations that were found. */
const decisions: Readonly<Record<string, string>> = {
  effect: '"weights"',
  answers: '"at once"',
  timeoutMs: "1000",
  repeatable: "true",
  since: '"0.1.1"',
  summary: '"Do it"',
  doc: '"Does it."',
  release: '"0.1.1"',
};

/** The vectors of release 0.1.1: where it has one field less, that is taken from the end of the bytes. */
async function vectorsOf(name: string): Promise<Vector[]> {
  const vectors = JSON.parse(await readFile(join(repository, `test/vectors/${name}.json`), "utf8")) as Vector[];
  return vectors.flatMap((vector) => {
    // tokens and their results have grown since
    if (vector.type === "BatchTokenIDOutSlim") return [];
    // without the schema's ranges, rooms and hashes are integers like any other
    if (/"(bootstrap_room|hash)":(?!null)/.test(JSON.stringify(vector.value ?? null))) return [];
    if (vector.type !== "UpdateWeightFromDiskReqInput") return [vector];
    const [head = "", payload = ""] = vector.frames;
    const { flush_cache, ...value } = (vector.value ?? {}) as { readonly [name: string]: Noted };
    // a header of seven elements, and a bool of one byte at the end
    if (!name.startsWith("control-") || flush_cache === undefined || !payload.startsWith("97")) return [];
    return [{ ...vector, value, frames: [head, `96${payload.slice(2, -2)}`] }];
  });
}

test("from an empty folder comes a schema whose code passes the vectors of that release", async () => {
  const root = await temporaryFolder();
  const folder = join(root, "schema");
  expect(syncInto(folder, wheel).added.leftOut.map(({ name }) => name)).toEqual([
    "TokenizedGenerateReqInput",
    "TokenizedEmbeddingReqInput",
  ]);
  const also = besides.map(wheelFile);
  const { files, added } = syncInto(folder, wheel, also);
  expect(added.operations).toHaveLength(20);
  expect(added.leftOut).toEqual([]);
  await write(files);
  expect([...syncInto(folder, wheel, also).files.keys()]).toEqual([]);
  await expect(generate([openSchema(folder).protocol], { wire: "enginewire/wire", extension: ".js" })).rejects.toThrow(
    /^141 problems in the schema/,
  );
  for (const name of await readdir(folder)) {
    const text = await readFile(join(folder, name), "utf8");
    const decided = text.replaceAll(/(\w+): decide\(".*"\)/g, (_, key: string) => `${key}: ${decisions[key]}`);
    await writeFile(
      join(folder, name),
      decided.replace('field("type", literal(1, 2), {', 'field("kind", literal(1, 2), { python: "type",'),
    );
  }
  // what a person decided stays
  expect([...syncInto(folder, wheel, also).files.keys()]).toEqual([]);
  await writeFile(join(root, "package.json"), '{ "type": "module" }');
  await symlink(join(repository, "node_modules"), join(root, "node_modules"));
  const generated = await generate([openSchema(folder).protocol], { wire: join(repository, "src/wire/index.ts"), extension: ".ts" });
  await write(new Map([...generated].map(([name, text]) => [join(root, name), text])));
  const load = async (name: string) => (await import(/* @vite-ignore */ pathToFileURL(join(root, "fork", name)).href)) as object;
  const library = { ...(await load("encoders.ts")), ...(await load("decoders.ts")) } as Messages;
  const reports: readonly (readonly [considered: number, report: Report])[] = [
    [179, runCanonical(library, await vectorsOf("control-requests"), isDeepStrictEqual)],
    [138, runCanonical(library, await vectorsOf("control-replies"), isDeepStrictEqual)],
    [69, runCanonical(library, await vectorsOf("generate"), isDeepStrictEqual)],
    [127, runLenient(library, await vectorsOf("decode-lenient"), isDeepStrictEqual)],
    [684, runReject(library, await vectorsOf("decode-reject"))],
  ];
  for (const [considered, report] of reports) {
    expect(report.failures).toEqual([]);
    expect(report.considered).toBe(considered);
  }
});
