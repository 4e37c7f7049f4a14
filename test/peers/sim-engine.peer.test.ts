import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type SimulatedEngine, startEngine, tokenOf } from "../../src/testing/index.ts";
import { comparable, replay } from "../contract/engine-replay.ts";
import { scripts } from "../contract/engine-scripts.ts";
import { peerBinary } from "./binaries.ts";
import { engineProcess, LineProcess } from "./sim-engine-process.ts";

const client = peerBinary("frontend-peer");
const realEngine = peerBinary("engine-peer");

/** Answers of the real client, by id. */
type Answer = Readonly<Record<string, unknown>>;

describe.skipIf(client === undefined)("the real client drives simulated engines", () => {
  let frontend: LineProcess;
  let engine: SimulatedEngine;
  let last = 0;

  beforeAll(async () => {
    frontend = new LineProcess(client ?? "", ["--engines", "2"]);
    const { handshake } = await frontend.line(({ event }) => event === "bound");
    engine = await startEngine({
      handshake: String(handshake),
      ranks: 2,
      memorySaver: true,
      eplb: true,
      outputLogprobs: true,
      forwardMs: 2,
    });
    await frontend.line(({ event }) => event === "connected");
  });

  afterAll(async () => {
    await engine.close();
    frontend.closeStdin();
    await frontend.stop();
  });

  async function ask(op: string, fields: object = {}): Promise<Answer> {
    last += 1;
    const id = last;
    frontend.tell({ id, op, ...fields });
    return frontend.line((line) => line.id === id && "ok" in line);
  }

  /** What both engines answered, without what the wire always leaves nil. */
  async function call(op: string, fields: object = {}): Promise<unknown> {
    const { ok, replies } = await ask(op, fields);
    expect(ok).toBe(true);
    const [first, second] = (replies as Record<string, unknown>[]).map(({ tag: _, rid, http_worker_ipc, ...rest }) => {
      expect([rid, http_worker_ipc]).toEqual([null, null]);
      return rest;
    });
    expect(second).toEqual(first);
    return first;
  }

  const group = { master_address: "127.0.0.1", master_port: 29500, rank_offset: 1, world_size: 3 };
  const distributed = { names: ["w"], dtype_names: ["bfloat16"], shapes: [[4, 4]], weight_version: "2" };
  const cases: readonly [string, object, unknown][] = [
    ["IsSchedulerPaused", {}, { is_paused: false }],
    ["PauseScheduler", { mode: "wait" }, { success: true, message: "" }],
    ["IsSchedulerPaused", {}, { is_paused: true }],
    ["PauseScheduler", { mode: "bogus" }, { success: false, message: 'invalid pause mode: "bogus"' }],
    ["InitWeightsUpdateGroup", group, { success: true, message: "weight update group initialized" }],
    ["UpdateWeightsFromDistributed", distributed, { success: true, message: "updated 1 weights" }],
    ["DestroyWeightsUpdateGroup", {}, { success: true, message: "weight update group destroyed" }],
    [
      "UpdateWeightFromDisk",
      { model_path: "/ckpt", weight_version: "3" },
      { success: true, message: "loaded weights from /ckpt", num_paused_requests: 0 },
    ],
    [
      "UpdateWeightsFromMooncake",
      { version: 7, flush_cache: true, weight_version: null },
      { success: true, message: "applied model version 7: stand-in" },
    ],
    [
      "UpdateWeightsFromTensor",
      { serialized_named_tensors: [], load_format: null, flush_cache: true },
      { success: false, message: "update_weights_from_tensor is not supported on this engine" },
    ],
    ["FlushCache", {}, { success: true }],
    ["ResumeScheduler", {}, { success: true, message: "" }],
    ["ReleaseMemoryOccupation", { tags: ["weights"] }, { success: true, message: "" }],
    ["IsSleeping", {}, { is_sleeping: true }],
    ["ResumeMemoryOccupation", {}, { success: true, message: "" }],
    ["IsSleeping", {}, { is_sleeping: false }],
    ["GetInternalState", {}, { internal_state: {} }],
    ["SetInternalState", { server_args: { x: 1 } }, { updated: false, server_args: {} }],
    ["Profile", { kind: 1 }, { success: true, message: "Succeeded" }],
    ["Profile", { kind: 2 }, { success: true, message: "Succeeded." }],
    ["RebalanceExperts", {}, { success: true, message: "expert load snapshot taken; the placement commits after 3 forwards" }],
  ];

  test.each(cases)("%s %o", async (op, fields, answer) => {
    expect(await call(op, fields)).toEqual(answer);
  });

  test("every operation of the schema was asked", () => {
    expect(new Set(cases.map(([op]) => op)).size).toBe(engine.state().received.size);
    expect(engine.state().received.size).toBe(17);
  });

  test("the weights of both engines moved in step", () => {
    expect(engine.state(0).weights).toMatchObject({ checksum: expect.stringMatching(/^[0-9a-f]{8}$/), version: "7", updates: 3 });
    expect(engine.state(0).weights.versions).toEqual([null, "2", "3", "7"]);
    expect(engine.state(1).weights).toEqual(engine.state(0).weights);
  });

  test("a stream brings every token once, from the weights of the third load", async () => {
    const asked = ask("generate", { rid: "r", input_ids: [1, 2, 3], stream: true, sampling_params: { max_new_tokens: 5 } });
    expect(await asked).toMatchObject({ ok: true, output_ids: [0, 1, 2, 3, 4].map((position) => tokenOf(3, position)) });
  });

  test("every column of logprobs is one that the real client takes; it shows those of the output", async () => {
    const scored = { input_ids: [10, 20, 30], return_logprob: true, logprob_start_len: 1, top_logprobs_num: 2 };
    expect(await ask("generate", { rid: "scored", stream: true, ...scored, sampling_params: { max_new_tokens: 1 } })).toMatchObject({
      ok: true,
      output_ids: [tokenOf(3, 0)],
    });
    expect(frontend.lines.find(({ event, rid }) => event === "chunk" && rid === "scored")?.chunk).toMatchObject({
      finish_reason: "length",
      output_token_logprobs: [-0.001],
    });
  });

  test("the loads that engines report reach the client", async () => {
    expect(await ask("loads")).toMatchObject({
      ok: true,
      loads: expect.arrayContaining([expect.objectContaining({ kv_total_pages: 512 })]),
    });
  });
});

const few = ["idle-weights-1", "pause-wait-two-ranks", "release-four-regions", "gated-different-kinds", "round-order-release"];
const picked = scripts.filter(({ name }) => (process.env.ENGINEWIRE_ALL_SCRIPTS === "1" ? true : few.includes(name)));

describe("one recorder drives either engine process", () => {
  const ours = engineProcess(process.execPath, [
    "--import",
    "tsx",
    join(import.meta.dirname, "../../src/cli/main.ts"),
    "engine",
    "--no-weights-in-tokens",
  ]);
  const real = engineProcess(realEngine ?? "");

  test.skipIf(realEngine === undefined).each(picked.map((script) => [script.name, script] as const))(
    "the real engine: %s",
    async (_, script) => {
      const { observed, surprises } = await replay(script, real);
      expect(comparable(observed, script.observed)).toEqual(comparable(script.observed, script.observed));
      expect(surprises).toEqual([]);
    },
  );

  test.each(picked.map((script) => [script.name, script] as const))("enginewire engine: %s", async (_, script) => {
    const { observed, surprises } = await replay(script, ours);
    expect(comparable(observed, script.observed)).toEqual(comparable(script.observed, script.observed));
    expect(surprises).toEqual([]);
  });
});
