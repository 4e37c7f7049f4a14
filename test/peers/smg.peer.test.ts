import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EngineEvent, type EngineMessage, type RankState, type SimulatedEngine, startEngine } from "../../src/testing/index.ts";
import { Gateway, gatewayMissing, until } from "./smg-gateway.ts";

const missing = await gatewayMissing();
if (missing !== undefined) console.warn(`SMG peer tests skipped: ${missing}`);

const group = { master_address: "127.0.0.1", master_port: 29_500, rank_offset: 1, world_size: 3 };
const bucket = { names: ["w"], dtypes: ["bfloat16"], shapes: [[4, 4]] };
const done = (message = "") => ({ status: 200, body: { success: true, message } });
const refused = (message: string) => ({ status: 400, body: { success: false, message: expect.stringContaining(message) } });

describe.skipIf(missing !== undefined).each([1, 2])("the real SMG gateway drives %i simulated engines", { timeout: 60_000 }, (ranks) => {
  let gateway: Gateway;
  let engine: SimulatedEngine;
  let worker: Record<string, unknown>;
  const received: EngineMessage[] = [];

  beforeAll(async () => {
    gateway = await Gateway.start(ranks);
    const onEvent = (event: EngineEvent) => event.event === "received" && received.push(event.message);
    const options = { dialect: "slim", ranks, memorySaver: true, forwardMs: 5, initTimeoutMs: 100_000, onEvent } as const;
    engine = await startEngine({ handshake: gateway.handshake, ...options });
    worker = await gateway.ready();
  }, 300_000);

  afterAll(async () => {
    await engine?.close();
    await gateway?.stop();
  });

  /** The states of all ranks. */
  function states(): RankState[] {
    return engine.indices.map((_, rank) => engine.state(rank));
  }

  /** Every rank is in this state. */
  function everyRank(state: object): void {
    for (const each of states()) expect(each).toMatchObject(state);
  }

  /** Starts a request and waits until it runs. */
  async function running(maxNewTokens: number) {
    const asked = generate(maxNewTokens);
    await until("a request reached an engine", () => states().find(({ running: count }) => count > 0));
    return asked;
  }

  /** A generation as the gateway answers it, in an object so that it is not waited for. */
  function generate(maxNewTokens: number) {
    return { answer: gateway.ask("POST", "/generate", { text: "hello world", sampling_params: { max_new_tokens: maxNewTokens } }) };
  }

  test("it takes them for one worker that answers control calls", () => {
    expect(worker).toMatchObject({ engine: "tokenspeed", connection_mode: "zmq", engine_control_calls: true, control_url: null });
    expect(engine.indices).toHaveLength(ranks);
  });

  test("generate brings every token", async () => {
    const { status, body } = await generate(3).answer;
    expect([status, body]).toMatchObject([200, { output_ids: [1000, 1001, 1002], meta_info: { finish_reason: { type: "length" } } }]);
  });

  test("a paused engine holds requests until it goes on", async () => {
    expect(await gateway.control("pause_generation", { mode: "keep" })).toEqual(done());
    everyRank({ paused: true, frozen: true });
    const { answer } = await running(4);
    expect(await gateway.control("continue_generation")).toEqual(done());
    expect((await answer).body).toMatchObject({ output_ids: [1000, 1001, 1002, 1003] });
    everyRank({ paused: false, running: 0 });
  });

  test("a pause without a mode waits, and one that comes meanwhile is refused under its own call", async () => {
    const { answer } = await running(300);
    received.length = 0;
    const first = gateway.control("pause_generation");
    await until("it drains", () => states().find(({ draining }) => draining === "pause"));
    expect(received).toMatchObject(engine.indices.map(() => ({ request: { $tag: "PauseSchedulerReqInput", mode: "wait" } })));
    expect(await gateway.control("pause_generation", { mode: "wait" })).toEqual(refused("a pause is already in progress"));
    expect(await first).toEqual(done());
    expect((await answer).body.output_ids).toHaveLength(300);
    everyRank({ paused: true, draining: undefined });
    await gateway.control("continue_generation", {});
    everyRank({ paused: false });
  });

  test("flush_cache by all its routes", async () => {
    expect(await gateway.control("flush_cache")).toEqual(done());
    expect(await gateway.ask("POST", "/flush_cache")).toMatchObject({ status: 200, body: { status: "success", workers_flushed: 1 } });
    const selected = await gateway.ask("POST", "/v1/rl/engine/flush_cache?selector=engine%3Dtokenspeed");
    expect(selected).toMatchObject({ status: 200, body: { total: 1, succeeded: 1, failed: [] } });
    for (const { replied } of states()) expect(replied.get("FlushCache")).toBe(3);
  });

  test("memory is released and taken again", async () => {
    expect(await gateway.control("release_memory_occupation", { tags: ["weights"] })).toEqual(done());
    everyRank({ released: ["weights"], frozen: true });
    expect(await gateway.control("release_memory_occupation", { tags: ["weights"] })).toEqual(
      refused('tags already released: ["weights"]'),
    );
    expect(await gateway.control("continue_generation")).toEqual(refused("memory is released"));
    expect(await gateway.control("resume_memory_occupation")).toEqual(done());
    everyRank({ released: [], paused: false });
  });

  test("a weight update from the group's making to its end", async () => {
    expect(await gateway.control("update_weights_from_distributed", bucket)).toEqual(refused("weight update group not initialized"));
    expect(await gateway.control("init_weights_update_group", group)).toEqual(done("weight update group initialized"));
    everyRank({ group: "weight_update_group" });
    received.length = 0;
    expect(await gateway.control("update_weights_from_distributed", { ...bucket, weight_version: "7" })).toEqual(done("updated 1 weights"));
    for (const message of received) {
      expect(message).toMatchObject({ request: { dtypeNames: ["bfloat16"], flushCache: false, groupName: "weight_update_group" } });
    }
    expect(received).toHaveLength(ranks);
    everyRank({ weights: { version: "7", updates: 1, checksum: engine.state(0).weights.checksum } });
    expect(await gateway.control("destroy_weights_update_group", {})).toEqual(done("weight update group destroyed"));
    everyRank({ group: undefined });
  });

  test("what one rank's device refuses is refused", async () => {
    engine.addRules({ failOp: [{ op: "UpdateWeightFromDisk", rank: ranks - 1, times: 1, message: "no such checkpoint" }] });
    const body = { model_path: "/checkpoints/8", weight_version: "8" };
    expect(await gateway.control("update_weights_from_disk", body)).toEqual(refused("no such checkpoint"));
    everyRank({ weights: { version: "7" } });
    expect(await gateway.control("update_weights_from_disk", body)).toEqual(done("loaded weights from /checkpoints/8"));
    everyRank({ weights: { version: "8" } });
  });

  test("the profiler starts and stops", async () => {
    expect(await gateway.control("start_profile", { output_dir: "/traces", activities: ["CPU"] })).toEqual(done("Succeeded"));
    everyRank({ profiling: true });
    expect(await gateway.control("start_profile", {})).toEqual(refused("Profiling is already in progress"));
    expect(await gateway.control("stop_profile")).toEqual(done("Succeeded."));
    everyRank({ profiling: false });
    expect((await gateway.ask("POST", "/start_profile", { num_steps: 50 })).status).toBe(200);
    everyRank({ profiling: true });
    expect((await gateway.ask("POST", "/stop_profile", {})).status).toBe(200);
    everyRank({ profiling: false });
  });

  test("a call that is no operation, or lacks something, is refused in words", async () => {
    expect(await gateway.control("pause_generation", { mode: "now" })).toEqual(refused('invalid pause mode: "now"'));
    expect(await gateway.control("is_scheduler_paused")).toEqual(refused("unknown control method: is_scheduler_paused"));
    expect(await gateway.control("init_weights_update_group", { master_address: "h" })).toEqual(refused("Invalid request: missing_field"));
    expect(await gateway.control("rebalance_experts")).toEqual(refused("--enable-eplb"));
    expect(await gateway.control("update_weights_from_mooncake", { version: 9 })).toEqual(done("applied model version 9: stand-in"));
    everyRank({ paused: false, group: undefined });
  });

  test("the engines' end fails the call under way at once", async () => {
    engine.addRules({ dropReply: [{ op: "FlushCache" }] });
    received.length = 0;
    const pending = gateway.control("flush_cache");
    await until("the engines have the call", () => (received.length === ranks ? true : undefined));
    await engine.close();
    expect(await pending).toMatchObject({ status: 502, body: { error: "upstream_unreachable" } });
  });
});
