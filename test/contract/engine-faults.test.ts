import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decode, encode } from "@msgpack/msgpack";
import { describe, expect, onTestFinished, test } from "vitest";
import { Pull, Router } from "zeromq";
import { type EngineEvent, type SimulatedEngineOptions, startEngine } from "../../src/testing/index.ts";
import { type Arrival, encodeGenerate, encodeOperation, RawFrontend } from "./engine-frontend.ts";

const operation = (op: string, fields: object = {}) => [Uint8Array.of(2), encodeOperation(op, fields as Record<string, unknown>)];

/** Engines that are up, and what they send. */
async function connected(options: Omit<SimulatedEngineOptions, "handshake"> = {}) {
  const arrivals: { engine: number; arrival: Arrival }[] = [];
  const watchers = new Set<() => void>();
  const frontend = await RawFrontend.bind(options.ranks ?? 1, (engine, arrival) => {
    arrivals.push({ engine, arrival });
    for (const watcher of watchers) watcher();
  });
  const [engine] = await Promise.all([startEngine({ handshake: frontend.address, ...options }), frontend.accept()]);
  onTestFinished(async () => {
    await engine.close();
    frontend.close();
  });
  const count = (least: number) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (arrivals.length < least) return;
        watchers.delete(look);
        resolve();
      };
      watchers.add(look);
      look();
    });
  return { engine, frontend, arrivals, count };
}

/** A frontend's handshake socket alone. */
async function handshakeSocket() {
  const socket = new Router({ linger: 0, receiveTimeout: 5000 });
  await socket.bind("tcp://127.0.0.1:*");
  onTestFinished(() => socket.close());
  return { socket, handshake: socket.lastEndpoint ?? "" };
}

function started(options: SimulatedEngineOptions) {
  const engine = startEngine(options);
  onTestFinished(() =>
    engine.then(
      (running) => running.kill(),
      () => {},
    ),
  );
  return engine;
}

describe("endings", () => {
  test("close says ENGINE_CORE_DEAD for every rank, behind what is queued", async () => {
    const { engine, frontend, arrivals, count } = await connected({ ranks: 2 });
    for (let call = 0; call < 50; call += 1) frontend.send(0, operation("IsSleeping"));
    await count(50);
    engine.sendRaw(0, encode(["last", "words"]).slice());
    await engine.close();
    await count(53);
    expect(arrivals.filter(({ arrival }) => arrival.kind === "dead").map(({ engine: index }) => index)).toHaveLength(2);
    expect(arrivals.filter(({ engine: index }) => index === 0).slice(-2)).toMatchObject([
      { arrival: { kind: "unknown", value: ["last", "words"] } },
      { arrival: { kind: "dead" } },
    ]);
    expect(await engine.closed).toEqual({ reason: "asked" });
  });

  test("kill and crash say nothing", async () => {
    const killed = await connected();
    await killed.engine.kill();
    const crashed = await connected({ crashOp: [{ op: "IsSleeping" }] });
    crashed.frontend.send(0, operation("IsSleeping"));
    expect(await crashed.engine.closed).toMatchObject({ reason: "crashed" });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect([...killed.arrivals, ...crashed.arrivals]).toEqual([]);
    expect(await killed.engine.closed).toEqual({ reason: "killed" });
  });

  test("a fault ends every rank with ENGINE_CORE_DEAD and no reply", async () => {
    const { engine, frontend, arrivals, count } = await connected({ ranks: 2, faultOp: [{ op: "Profile", rank: 1, message: "no GPU" }] });
    frontend.send(1, operation("Profile", { kind: 1 }));
    await count(2);
    expect(arrivals.map(({ arrival }) => arrival.kind)).toEqual(["dead", "dead"]);
    expect(await engine.closed).toMatchObject({ reason: "error", error: { message: "no GPU" } });
  });

  test("by default it does not notice that its frontend is gone, as the released engine; asked to, it stops", async () => {
    const events: EngineEvent[] = [];
    const { engine, frontend } = await connected({ stopsWithFrontend: true, onEvent: (event) => events.push(event) });
    frontend.close();
    expect(await engine.closed).toEqual({ reason: "frontend_lost" });
    expect(events.at(-1)).toEqual({ event: "ended", reason: "frontend_lost" });

    const released = await connected();
    released.frontend.close();
    const outcome = await Promise.race([released.engine.closed, new Promise((resolve) => setTimeout(resolve, 200, "still there"))]);
    expect(outcome).toBe("still there");
  });
});

describe("replies gone wrong, over the wire", () => {
  test("twice, late, wrong and raw", async () => {
    const { engine, frontend, arrivals, count } = await connected({
      duplicateReply: [{ op: "IsSleeping", times: 1 }],
      lateReply: [{ op: "IsSchedulerPaused", times: 1, ms: 80 }],
      wrongReply: [{ op: "GetInternalState", times: 1, reply: { $tag: "FlushCacheReqOutput", success: true } }],
    });
    frontend.send(0, operation("IsSleeping"));
    await count(2);
    frontend.send(0, operation("IsSchedulerPaused"));
    frontend.send(0, operation("GetInternalState"));
    await count(4);
    engine.sendRaw(0, encode(["IsSleepingReqOutput", null, null, true]).slice());
    await count(5);
    const tags = arrivals.map(({ arrival }) => (arrival.kind === "reply" ? arrival.tag : arrival.kind));
    expect(tags.slice(0, 3)).toEqual(["IsSleepingReqOutput", "IsSleepingReqOutput", "FlushCacheReqOutput"]);
    expect(tags.slice(3).sort()).toEqual(["IsSchedulerPausedReqOutput", "IsSleepingReqOutput"]);
    expect(engine.state().received.get("IsSleeping")).toBe(1);
    expect(engine.state().replied.get("IsSleeping")).toBe(2);
  });
});

test("an engine without control operations drops them and serves", async () => {
  const dropped: string[] = [];
  const onEvent = (event: EngineEvent) => event.event === "dropped" && dropped.push(event.reason);
  const { frontend, arrivals, count } = await connected({ control: false, onEvent });
  frontend.send(0, operation("IsSleeping"));
  frontend.send(0, [Uint8Array.of(0), encodeGenerate("r", [1, 2, 3], 1, null)]);
  await count(1);
  expect(arrivals).toMatchObject([{ arrival: { kind: "batch" } }]);
  expect(dropped).toEqual(["this engine has no control operations"]);
});

test("rules can be added while it runs", async () => {
  const { engine, frontend, arrivals, count } = await connected();
  engine.addRules({ dropReply: [{ op: "IsSleeping", times: 1 }] });
  for (const op of ["IsSleeping", "IsSchedulerPaused"]) frontend.send(0, operation(op));
  await count(1);
  expect(arrivals).toMatchObject([{ arrival: { tag: "IsSchedulerPausedReqOutput" } }]);
  expect(() => engine.addRules({ failOp: [{ op: "IsSleeping" }] })).toThrow("the device does not decide its outcome");
});

describe("handshakes gone wrong", () => {
  const statusOf = (frame: Uint8Array | undefined) => (decode(frame ?? new Uint8Array()) as { status: string }).status;

  test.each([
    ["second-hello", ["HELLO", "HELLO"]],
    ["ready-first", ["READY"]],
    ["unknown-status", ["GOODBYE"]],
  ] as const)("%s", async (kind, statuses) => {
    const { socket, handshake } = await handshakeSocket();
    await started({ handshake, handshakeFault: { kind } });
    for (const status of statuses) expect(statusOf((await socket.receive())[1])).toBe(status);
  });

  test("an engine that says HELLO twice serves where it is let in", async () => {
    const { frontend, count } = await connected({ handshakeFault: { kind: "second-hello" } });
    frontend.send(0, operation("IsSleeping"));
    await count(1);
  });

  test("no READY, and no registration", async () => {
    const { socket, handshake } = await handshakeSocket();
    const addresses = { inputs: ["tcp://127.0.0.1:1"], outputs: ["tcp://127.0.0.1:1"] };
    for (const [index, kind] of (["no-ready", "no-registration"] as const).entries()) {
      const engine = started({ handshake, index, handshakeFault: { kind } });
      const [identity] = await socket.receive();
      await socket.send([identity as Buffer, encode({ addresses })]);
      await engine;
    }
    expect(statusOf((await socket.receive())[1])).toBe("READY");
    socket.receiveTimeout = 100;
    await expect(socket.receive()).rejects.toThrow();
  });

  test("two frames, and garbage", async () => {
    const { socket, handshake } = await handshakeSocket();
    await started({ handshake, handshakeFault: { kind: "two-frames" } });
    expect(await socket.receive()).toHaveLength(3);
    await started({ handshake, index: 1, handshakeFault: { kind: "garbage-hello" } });
    expect([...((await socket.receive())[1] ?? [])]).toEqual([0xc1]);
  });

  test("the identity is the index, two bytes little-endian", async () => {
    const { socket, handshake } = await handshakeSocket();
    for (const index of [0, 255, 256, 0x8081, 65_535]) {
      await started({ handshake, index, handshakeFault: { kind: "unknown-status" } });
      expect([...((await socket.receive())[0] ?? [])]).toEqual([index & 0xff, index >> 8]);
    }
  });

  test("garbage as registration, or another rank", async () => {
    const { socket, handshake } = await handshakeSocket();
    const input = new Router({ linger: 0, receiveTimeout: 5000 });
    const output = new Pull({ linger: 0 });
    onTestFinished(() => {
      input.close();
      output.close();
    });
    await input.bind("tcp://127.0.0.1:*");
    await output.bind("tcp://127.0.0.1:*");
    const addresses = { inputs: [input.lastEndpoint, "tcp://nowhere:1"], outputs: [output.lastEndpoint] };
    const registered = async (index: number, registration?: SimulatedEngineOptions["registration"]) => {
      const engine = started({ handshake, index, ...(registration && { registration }) });
      const [identity, hello] = await socket.receive();
      expect(statusOf(hello)).toBe("HELLO");
      await socket.send([identity as Buffer, encode({ addresses, unknown: 1 })]);
      expect(statusOf((await socket.receive())[1])).toBe("READY");
      const [, payload] = await input.receive();
      await (await engine).close();
      return payload ?? new Uint8Array();
    };
    expect([...(await registered(0, Uint8Array.of(0xc1)))]).toEqual([0xc1]);
    expect(decode(await registered(1, { dataParallelRank: 5 }))).toMatchObject({ data_parallel_rank: 5, data_parallel_size: 1 });
    expect(decode(await registered(2))).toMatchObject({
      max_model_len: 4096,
      num_gpu_blocks: 512,
      vllm_version: "tokenspeed-0.1.0",
      dtype: "bfloat16",
      kv_cache_max_concurrency: 2,
      instance_id: "stand-in",
    });
  });

  test("no INIT, no addresses, and a caller that gives up", async () => {
    const silent = await handshakeSocket();
    await expect(startEngine({ handshake: silent.handshake, initTimeoutMs: 50 })).rejects.toMatchObject({ code: "handshake_timeout" });
    const { socket, handshake } = await handshakeSocket();
    const failing = startEngine({ handshake });
    const [identity] = await socket.receive();
    await socket.send([identity as Buffer, encode({ addresses: { inputs: [], outputs: [] } })]);
    await expect(failing).rejects.toThrow("INIT carried no input or output address");
    await expect(startEngine({ handshake, signal: AbortSignal.timeout(50) })).rejects.toMatchObject({ name: "TimeoutError" });
    await expect(startEngine({ handshake, ranks: 0 })).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(startEngine({ handshake, memoryRegions: ["vram"] })).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(startEngine({ handshake, failOp: [{ op: "FlushCache" }] })).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("it dials until the frontend is there", async () => {
    const folder = await mkdtemp(join(tmpdir(), "enginewire-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const handshake = `ipc://${join(folder, "handshake")}`;
    const engine = started({ handshake, handshakeFault: { kind: "unknown-status" } });
    await new Promise((resolve) => setTimeout(resolve, 150));
    const late = new Router({ linger: 0, receiveTimeout: 5000 });
    onTestFinished(() => late.close());
    await late.bind(handshake);
    await engine;
    expect(statusOf((await late.receive())[1])).toBe("GOODBYE");
  });
});

test("a process that closed its engine ends by itself", { timeout: 60_000 }, async () => {
  const frontend = await RawFrontend.bind(1, () => {});
  onTestFinished(() => frontend.close());
  const testing = new URL("../../src/testing/index.ts", import.meta.url);
  const program = `
    const { startEngine } = await import(${JSON.stringify(testing.href)});
    const engine = await startEngine({ handshake: ${JSON.stringify(frontend.address)} });
    await engine.close();`;
  const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", program], { stdio: "inherit" });
  await frontend.accept();
  expect(await once(child, "exit")).toEqual([0, null]);
});
