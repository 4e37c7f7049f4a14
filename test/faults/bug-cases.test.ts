// Cases of docs/bug-cases.md that nothing else tests; the titles begin with their ids.
import { spawn, spawnSync } from "node:child_process";
import { getEventListeners, once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { createClient, type EngineReply, operations } from "../../src/index.ts";
import { encodeControlOutput, PROFILE_START } from "../../src/messages.ts";
import { startEngine } from "../../src/testing/index.ts";
import { connectSimulated } from "../contract/simulated-group.ts";
import { ScriptedEngine } from "./scripted-engine.ts";
import { connectScripted, failureOf, listen } from "./scripted-group.ts";
import { receiveAbort, receiveAdd } from "./scripted-output.ts";

it("Z08 a request for an engine that is not connected is an error", async () => {
  const { client, engines } = await connectScripted(2);
  engines[1]?.close();
  // by whatever comes first: the end of its output, or the router that knows no such peer
  const failure = await failureOf(client.isSleeping({}, { engines: [1], timeoutMs: 20_000 }));
  expect(failure).toMatchObject({ code: "engine_dead", engine: 1 });
});

it("Z12 what a caller changes after a call does not reach the engine", async () => {
  const { client, engines } = await connectScripted(1);
  const names = Array.from({ length: 1000 }, (_, index) => `layer ${index}`);
  const serverArgs = { names, bytes: new Uint8Array(5000).fill(7) };
  const calls = [client.setInternalState({ serverArgs }), client.updateWeightFromDisk({ modelPath: "x".repeat(10_000) })];
  names.fill("overwritten");
  serverArgs.bytes.fill(0);
  const first = await engines[0]?.receive();
  const second = await engines[0]?.receive();
  expect(first).toMatchObject({ serverArgs: { bytes: new Uint8Array(5000).fill(7) } });
  expect(JSON.stringify(first)).not.toContain("overwritten");
  expect(second).toMatchObject({ modelPath: "x".repeat(10_000) });
  await engines[0]?.reply({ $tag: "SetInternalStateReqOutput", updated: false, serverArgs: {} });
  await engines[0]?.reply({ $tag: "UpdateWeightFromDiskReqOutput", success: true, message: "" });
  await Promise.all(calls);
});

it("Z05 aborts that were sent just before a process ends arrive, from 20 processes", { timeout: 120_000 }, async () => {
  const program = fileURLToPath(new URL("aborting-program.ts", import.meta.url));
  const one = async (): Promise<number> => {
    const child = spawn(process.execPath, ["--import", "tsx", program, "3"], { stdio: ["ignore", "pipe", "inherit"] });
    const [address] = (await once(child.stdout, "data")) as [Buffer];
    const engine = new ScriptedEngine(address.toString().trim());
    const exit = once(child, "exit");
    await engine.register();
    for (let adds = 0; adds < 3; adds++) await receiveAdd(engine);
    let aborted = 0;
    while (aborted < 3) aborted += (await receiveAbort(engine)).length;
    expect(await exit).toEqual([0, null]);
    engine.close();
    return aborted;
  };
  const counts: number[] = [];
  for (let round = 0; round < 5; round++) counts.push(...(await Promise.all([one(), one(), one(), one()])));
  expect(counts).toEqual(Array.from({ length: 20 }, () => 3));
});

it.each([
  ["missing", "ERR_MODULE_NOT_FOUND", "run `npm install zeromq@6`"],
  ["broken", "ERR_DLOPEN_FAILED", "native addon does not load here"],
])("Z13 a %s zeromq is a typed error with the remedy", (_, code, remedy) => {
  // a process of its own, whose loader fails as Node does
  const loader = `export const resolve = (name, context, next) => {
    if (name === "zeromq") throw Object.assign(new Error("no zeromq"), { code: "${code}" });
    return next(name, context);
  };`;
  const register = `import { register } from "node:module"; register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(loader)}`)});`;
  const program = `
    const { bind } = await import(${JSON.stringify(new URL("../../src/node/index.ts", import.meta.url).href)});
    const failure = await bind({ count: 1, handshake: "tcp://127.0.0.1:0" }).catch((error) => error);
    console.log(failure.code, failure.message);`;
  const hooks = ["--import", "tsx", "--import", `data:text/javascript,${encodeURIComponent(register)}`];
  const { stdout, stderr } = spawnSync(process.execPath, [...hooks, "--input-type=module", "--eval", program], { encoding: "utf8" });
  expect(stderr).toBe("");
  expect(stdout).toMatch(/^transport_unavailable /);
  expect(stdout).toContain(`${process.platform}-${process.arch}, Node ${process.versions.node}`);
  expect(stdout).toContain(remedy);
});

it("M09 and M11 hostile bytes cost an event each, and the next reply is delivered", async () => {
  const { client, engines } = await connectScripted(1);
  const hostile = ["ddffffffff", "dfffffffff", "c6ffffffff", "dbffffffff", "91".repeat(100_000), "92c0", "c0c0", "c1", "a1ff", "a2c0af"];
  const prefix = Buffer.from("94b949734c656570696e67526571", "hex");
  const frames = hostile.flatMap((hex) => [Buffer.from(hex, "hex"), Buffer.concat([prefix, Buffer.from(hex, "hex")])]);
  const call = client.isSleeping({}, { timeoutMs: 20_000 });
  await engines[0]?.receive();
  for (const frame of frames) await engines[0]?.send(frame);
  await engines[0]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: true });
  expect(await call).toMatchObject([{ reply: { isSleeping: true } }]);
  const { malformedMessages, unknownTags } = client.connection.counts;
  expect(malformedMessages + unknownTags).toBe(frames.length);
});

it("P03 messages of every wrong kind between replies settle nothing and are counted", async () => {
  const { client, engines } = await connectScripted(1);
  const whole = encodeControlOutput({ $tag: "IsSleepingReqOutput", isSleeping: false });
  // an unknown tag; then nil, a map, an empty array, a tag that is a number, a reply that is cut
  const unknown = Buffer.from("92a3666f6fc0", "hex");
  const malformed = ["c0", "80", "90", "9107"].map((hex) => Buffer.from(hex, "hex"));
  malformed.push(Buffer.from(whole.slice(0, -1)));
  for (let round = 0; round < 20; round++) {
    const call = client.isSleeping({}, { timeoutMs: 20_000 });
    await engines[0]?.receive();
    for (const frame of [unknown, ...malformed]) await engines[0]?.send(frame);
    await engines[0]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: round % 3 === 0 });
    expect(await call).toMatchObject([{ reply: { isSleeping: round % 3 === 0 } }]);
  }
  expect(client.connection.counts).toMatchObject({ unknownTags: 20, malformedMessages: 100, unexpectedReplies: 0 });
});

it("E01 a refused flush is one request and one typed refusal", async () => {
  const { client, engines } = await connectScripted(1);
  for (let refusal = 0; refusal < 3; refusal++) {
    const call = failureOf(client.flushCache());
    await engines[0]?.receive();
    await engines[0]?.reply({ $tag: "FlushCacheReqOutput", success: false });
    expect(await call).toMatchObject({ code: "operation_failed", operation: "flushCache" });
  }
  expect(await engines[0]?.receivesWithin(100)).toBe(false);
});

it.each([
  ["none", [true, true]],
  ["the second", [true, false]],
  ["the first", [false, true]],
  ["all", [false, false]],
  ["the third of four", [true, true, false, true]],
])("E02 refusal by %s of the ranks: success only when all succeed, and every reply is told", async (_, outcomes) => {
  const { client, engines } = await connectScripted(outcomes.length);
  const call = client.pauseScheduler({ mode: "wait" });
  const ended = call.then(
    (replies) => ({ replies, code: "ok" }),
    (error: { replies: readonly EngineReply[]; code: string }) => error,
  );
  for (const [index, success] of outcomes.entries()) {
    await engines[index]?.receive();
    // equal messages: nothing but the engine tells them apart
    await engines[index]?.reply({ $tag: "PauseSchedulerReqOutput", success, message: "same" });
  }
  const { code, replies } = await ended;
  expect(code).toBe(outcomes.every(Boolean) ? "ok" : "operation_failed");
  expect(replies.map(({ engine, reply }) => [engine, "success" in reply && reply.success])).toEqual([...outcomes.entries()]);
});

it.each([
  ["an empty list", { tags: [] }, "refused"],
  ["an unknown tag", { tags: ["vram"] }, "refused"],
] as const)("E04 release and resume: %s never leaves", async (_, init, code) => {
  const { client, engine } = await connectSimulated({ memorySaver: true });
  expect((await failureOf(client.releaseMemoryOccupation(init))).code).toBe(code);
  await client.releaseMemoryOccupation();
  expect((await failureOf(client.resumeMemoryOccupation(init))).code).toBe(code);
  expect([engine.state().received.get("ReleaseMemoryOccupation"), engine.state().received.get("ResumeMemoryOccupation")]).toEqual([
    1,
    undefined,
  ]);
});

it("E04 release and resume: the engine's own refusals pass through with its words", async () => {
  const { client } = await connectSimulated({ memorySaver: true }, { guard: false });
  const early = await failureOf(client.resumeMemoryOccupation({ tags: ["kv_cache"] }));
  await client.releaseMemoryOccupation();
  const second = await failureOf(client.releaseMemoryOccupation());
  for (const failure of [early, second]) {
    const [answer] = (failure.replies ?? []) as { reply: { success: boolean; message: string } }[];
    expect(failure.code).toBe("operation_failed");
    expect(answer?.reply.message.length).toBeGreaterThan(0);
    expect(failure.message).toContain(answer?.reply.message);
  }
});

it("E06 a second pause never gets the answer of the first", async () => {
  const { client, engines } = await connectScripted(1);
  const first = client.pauseScheduler({ mode: "wait" });
  const second = failureOf(client.pauseScheduler({ mode: "wait" }, { timeoutMs: 20_000 }));
  await engines[0]?.receive();
  expect(await engines[0]?.receivesWithin(50)).toBe(false);
  await engines[0]?.reply({ $tag: "PauseSchedulerReqOutput", success: true, message: "drained" });
  expect(await first).toMatchObject([{ reply: { success: true, message: "drained" } }]);
  await engines[0]?.receive();
  await engines[0]?.reply({ $tag: "PauseSchedulerReqOutput", success: false, message: "refused" });
  expect((await second).replies).toMatchObject([{ reply: { message: "refused" } }]);
});

it("E08 50 concurrent queries each get their own answer", async () => {
  const { client, engines } = await connectScripted(1);
  const calls = Array.from({ length: 50 }, (_, id) => client.setInternalState({ serverArgs: { id } }));
  for (let served = 0; served < 50; served++) {
    const request = await engines[0]?.receive();
    await new Promise((resolve) => setTimeout(resolve, (served * 7) % 5));
    const serverArgs = request?.$tag === "SetInternalStateReq" ? { ...request.serverArgs } : {};
    await engines[0]?.reply({ $tag: "SetInternalStateReqOutput", updated: true, serverArgs });
  }
  const answered = (await Promise.all(calls)).map(([reply]) => ({ ...reply?.reply.serverArgs }));
  expect(answered).toEqual(Array.from({ length: 50 }, (_, id) => ({ id })));
});

it("E11 an engine that answers no control operations is found out, and asked nothing", async () => {
  const listener = await listen({ probeTimeoutMs: 100 });
  const started = startEngine({ handshake: listener.handshakeAddress, control: false });
  onTestFinished(async () => (await started).close());
  const connection = await listener.accept({ timeoutMs: 20_000 });
  const client = createClient(connection, { guard: false });
  const calls = [client.pauseScheduler(), client.isSleeping(), client.flushCache(), client.updateWeightFromDisk({ modelPath: "/m" })];
  for (const call of calls) expect(await failureOf(call)).toMatchObject({ code: "unsupported", engine: 0 });
  expect(connection.engines[0]?.capabilities.control).toBe(false);
  expect([...(await started).state().received]).toEqual([]);
});

it("E13 a profile has minutes, and a timeout says that it may still end", async () => {
  const { client, engines } = await connectScripted(1);
  expect(operations.profile.timeoutMs).toBeGreaterThanOrEqual(600_000);
  const failure = failureOf(client.profile({ kind: PROFILE_START }, { timeoutMs: 50 }));
  await engines[0]?.receive();
  expect(await failure).toMatchObject({ code: "timeout", stage: "reply" });
  expect((await failure).message).toContain("it may still take effect");
});

it("E15 1,000 calls with one signal warn of nothing and leave no listener", async () => {
  const warnings: Error[] = [];
  const warn = (warning: Error) => warnings.push(warning);
  process.on("warning", warn);
  onTestFinished(() => void process.off("warning", warn));
  const { client, engines } = await connectScripted(1);
  const { signal } = new AbortController();
  const calls = Array.from({ length: 1000 }, () => client.isSleeping({}, { signal }));
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  for (let served = 0; served < 1000; served++) {
    await engines[0]?.receive();
    await engines[0]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: false });
  }
  await Promise.all(calls);
  expect(getEventListeners(signal, "abort")).toEqual([]);
  expect(warnings).toEqual([]);
});
