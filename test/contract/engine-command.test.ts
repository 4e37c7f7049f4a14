import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { LineProcess } from "../peers/sim-engine-process.ts";
import { type Arrival, encodeGenerate, encodeOperation, RawFrontend } from "./engine-frontend.ts";

const main = join(import.meta.dirname, "../../src/cli/main.ts");

function command(...flags: string[]): LineProcess {
  const process_ = new LineProcess(process.execPath, ["--import", "tsx", main, "engine", ...flags]);
  onTestFinished(() => process_.stop("SIGKILL"));
  return process_;
}

/** A process whose engines are up, and when each of their messages came. */
async function running(ranks: number, ...flags: string[]) {
  const arrivals: { readonly engine: number; readonly arrival: Arrival; readonly at: number }[] = [];
  const frontend = await RawFrontend.bind(ranks, (engine, arrival) => arrivals.push({ engine, arrival, at: performance.now() }));
  onTestFinished(() => frontend.close());
  const engine = command("--handshake", frontend.address, "--ranks", String(ranks), ...flags);
  await Promise.all([frontend.accept(), engine.line(({ event }) => event === "all_ready")]);
  return { engine, frontend, arrivals };
}

const events = (engine: LineProcess) => engine.lines.map(({ event }) => event);
const last = (engine: LineProcess) => engine.lines.at(-1);

describe("enginewire engine", { timeout: 60_000 }, () => {
  test.each(["SIGTERM", "SIGINT"] as const)("%s: every rank says ENGINE_CORE_DEAD at once, the last line is the exit", async (signal) => {
    const { engine, arrivals } = await running(2);
    const asked = performance.now();
    void engine.stop(signal);
    expect(await engine.exited).toEqual({ code: 0, signal: null });
    expect(arrivals.map(({ engine: rank, arrival }) => [rank, arrival.kind]).sort()).toEqual([
      [0, "dead"],
      [1, "dead"],
    ]);
    // a tenth of a second on an idle machine
    expect(Math.max(...arrivals.map(({ at }) => at - asked))).toBeLessThan(1000);
    expect(events(engine)).toEqual(["start", "connecting", "connecting", "ready", "ready", "all_ready", "stopped", "stopped", "exit"]);
    expect(last(engine)).toMatchObject({ event: "exit", reason: "asked" });
  });

  test("the lines of a trace are those of the real peer", async () => {
    const { engine, frontend } = await running(1, "--trace", "--delay-op", "Profile#1=5", "--drop-reply", "FlushCache");
    for (const [op, fields] of [
      ["Profile", { kind: 1 }],
      ["FlushCache", {}],
      ["UpdateWeightFromDisk", { model_path: "/ckpt" }],
    ] as const) {
      frontend.send(0, [Uint8Array.of(2), encodeOperation(op, fields)]);
    }
    await engine.line(({ event, reply }) => event === "replied" && (reply as { tag: string }).tag === "UpdateWeightFromDiskReqOutput");
    expect(engine.lines.find(({ event }) => event === "received")).toMatchObject({
      rank: 0,
      t_ms: expect.any(Number),
      message: { type: "control", op: "Profile", value: { tag: "ProfileReq", kind: 1, output_dir: null, profile_by_stage: false } },
    });
    expect(engine.lines.find(({ event }) => event === "ready")).toMatchObject({ registration: { max_model_len: 4096, dtype: "bfloat16" } });
    expect(engine.lines.find(({ event }) => event === "delay")).toMatchObject({ rank: 0, op: "Profile", ms: 5 });
    expect(engine.lines.find(({ event }) => event === "device")).toMatchObject({ op: "Profile", success: true, message: "Succeeded" });
    expect(engine.lines.find(({ event }) => event === "reply_dropped")).toMatchObject({
      reply: { tag: "FlushCacheReqOutput", success: true },
    });
    expect(engine.lines.findLast(({ event }) => event === "replied")).toMatchObject({
      reply: { success: true, message: "loaded weights from /ckpt", num_paused_requests: 0 },
    });
  });

  test("flags of generation: logprobs, tokens that no load changes, fewer columns, bad batches", async () => {
    const { frontend, arrivals, engine } = await running(
      ...([1, "--logprobs", "--no-weights-in-tokens", "--output-columns", "13", "--bad-batch", "unknown-rid@0#1"] as const),
    );
    frontend.send(0, [Uint8Array.of(2), encodeOperation("UpdateWeightFromDisk", { model_path: "/ckpt" })]);
    frontend.send(0, [Uint8Array.of(0), encodeGenerate("r", [1, 2, 3], 1, null, { returnLogprob: true })]);
    await engine.line(({ event }) => event === "bad_batch");
    await expect.poll(() => arrivals.length).toBe(2);
    const batch = arrivals.flatMap(({ arrival }) => (arrival.kind === "batch" ? [arrival] : []));
    const [{ columns } = expect.unreachable()] = batch;
    expect(columns.slice(0, 8)).toEqual([
      ["r", "nobody-asked"],
      ...[
        [[1000], [1000]],
        ["length", "length"],
        [3, 3],
        [1, 1],
        [0, 0],
      ],
      ...[
        [[-0.001], [-0.001]],
        [[1000], [1000]],
      ],
    ]);
    expect(columns).toHaveLength(13);
  });

  test("it stops when stdin closes, and when the frontend is gone", async () => {
    const asked = await running(1, "--until-stdin-closes");
    asked.engine.closeStdin();
    expect(await asked.engine.exited).toEqual({ code: 0, signal: null });
    expect(last(asked.engine)).toMatchObject({ reason: "asked" });

    const left = await running(1);
    left.frontend.close();
    expect(await left.engine.exited).toEqual({ code: 0, signal: null });
    expect(events(left.engine)).toContain("frontend_lost");
    expect(last(left.engine)).toMatchObject({ reason: "frontend_lost" });
  });

  test("a fault exits with 1, a crash without a word", async () => {
    const faulty = await running(1, "--fault-op", "Profile=no GPU");
    faulty.frontend.send(0, [Uint8Array.of(2), encodeOperation("Profile", { kind: 1 })]);
    expect(await faulty.engine.exited).toEqual({ code: 1, signal: null });
    expect(faulty.engine.lines.slice(-2)).toMatchObject([
      { event: "error", error: "loop: no GPU" },
      { event: "exit", reason: "error" },
    ]);
    expect(faulty.arrivals).toMatchObject([{ arrival: { kind: "dead" } }]);

    const crashing = await running(1, "--crash-op", "IsSleeping");
    crashing.frontend.send(0, [Uint8Array.of(2), encodeOperation("IsSleeping", {})]);
    expect(await crashing.engine.exited).toEqual({ code: 134, signal: null });
    expect(last(crashing.engine)).toMatchObject({ event: "crash", op: "IsSleeping" });
    expect(crashing.arrivals).toEqual([]);
  });

  test.each([
    [[], "required option '--handshake <address>' not specified"],
    [["--handshake", "tcp://127.0.0.1:1", "--fail-op", "Nothing"], "no operation has this name"],
    [["--handshake", "tcp://127.0.0.1:1", "--fail-op", "FlushCache=x"], "the device does not decide its outcome"],
    [["--handshake", "tcp://127.0.0.1:1", "--delay-op", "Profile"], "a delay needs =MS"],
    [["--handshake", "tcp://127.0.0.1:1", "--fail-op", "Profile#x"], "#N is a count"],
    [["--handshake", "tcp://127.0.0.1:1", "--fail-op", "Profile@x"], "@RANK is a number"],
    [["--handshake", "tcp://127.0.0.1:1", "--bad-batch", "Forward"], "a batch fault is one of unequal-columns"],
    [["--handshake", "tcp://127.0.0.1:1", "--output-columns", "10"], "outputColumns is one of 8, 9, 13, 22"],
    [["--handshake", "tcp://127.0.0.1:1", "--forward-ms", "soon"], '"soon" is no number'],
    [["--handshake", "tcp://127.0.0.1:1", "--ranks", "0"], "ranks is a whole number"],
    [["--handshake", "tcp://127.0.0.1:1", "--depth", "0"], "unknown option '--depth'"],
  ])("bad flags exit with 2: %j", async (flags, message) => {
    const engine = command(...flags);
    expect(await engine.exited).toEqual({ code: 2, signal: null });
    expect(engine.errors).toContain(message);
    expect(events(engine)).not.toContain("exit");
  });

  test("no INIT in time exits with 1", async () => {
    const engine = command("--handshake", "tcp://127.0.0.1:1", "--init-timeout-s", "0.1");
    expect(await engine.exited).toEqual({ code: 1, signal: null });
    expect(last(engine)).toMatchObject({ event: "exit", reason: "error" });
  });
});
