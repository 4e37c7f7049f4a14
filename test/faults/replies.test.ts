import { expect, it } from "vitest";
import { encodeControlOutput } from "../../src/messages.ts";
import { connectScripted, failureOf } from "./scripted-group.ts";

const paused = (message: string) => ({ $tag: "PauseSchedulerReqOutput", success: true, message }) as const;

it("attributes each reply to the engine that gave it, whatever the order", async () => {
  const { client, engines } = await connectScripted(2);
  const call = client.pauseScheduler({ mode: "wait" });
  for (const engine of engines) await engine.receive();
  await engines[1]?.reply(paused("one"));
  await engines[0]?.reply(paused("zero"));
  expect((await call).map(({ engine, reply }) => [engine, reply.message])).toEqual([
    [0, "zero"],
    [1, "one"],
  ]);
});

it("reports every reply when one engine fails", async () => {
  const { client, engines } = await connectScripted(2);
  const call = client.pauseScheduler({ mode: "wait" });
  for (const engine of engines) await engine.receive();
  await engines[0]?.reply(paused(""));
  await engines[1]?.reply({ $tag: "PauseSchedulerReqOutput", success: false, message: "a pause is already in progress" });
  const failure = await failureOf(call);
  expect(failure).toMatchObject({ code: "operation_failed", operation: "pauseScheduler", engine: 1 });
  expect(failure.message).toContain("1 of 2 engines (engine 1: a pause is already in progress)");
  expect(failure.replies).toMatchObject([
    { engine: 0, reply: { success: true } },
    { engine: 1, reply: { success: false } },
  ]);
});

it("passes a refusal on from `control`, without judging it", async () => {
  const { client, engines } = await connectScripted(1);
  const call = client.control({ $tag: "FlushCacheReqInput" });
  await engines[0]?.receive();
  await engines[0]?.reply({ $tag: "FlushCacheReqOutput", success: false });
  expect(await call).toMatchObject([{ engine: 0, reply: { success: false } }]);
});

it("gives a repeated call its own answer, not that of the call abandoned before it, 100 times", async () => {
  const { client, engines } = await connectScripted(1);
  const [engine] = engines;
  for (let round = 0; round < 100; round++) {
    const abandoned = failureOf(client.pauseScheduler({ mode: "wait" }, { timeoutMs: 10 }));
    await engine?.receive();
    expect((await abandoned).code).toBe("timeout");
    const repeated = client.pauseScheduler({ mode: "wait" }, { timeoutMs: 20_000 });
    await engine?.reply(paused(`first ${round}`));
    await engine?.receive();
    await engine?.reply(paused(`second ${round}`));
    expect((await repeated).map(({ reply }) => reply.message)).toEqual([`second ${round}`]);
  }
  expect(client.connection.counts).toMatchObject({ lateReplies: 100, unexpectedReplies: 0 });
});

it("says which engines did not answer in time, and what the others said", async () => {
  const { client, engines } = await connectScripted(2);
  const call = failureOf(client.isSleeping({}, { timeoutMs: 300 }));
  await engines[1]?.receive();
  await engines[1]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: true });
  const failure = await call;
  expect(failure).toMatchObject({ code: "timeout", operation: "isSleeping", stage: "reply", missing: [0] });
  expect(failure.replies).toMatchObject([{ engine: 1, reply: { isSleeping: true } }]);
  expect(failure.message).toContain("got no answer from engine 0 within 300 ms after it was sent: it may still take effect");
});

it("says since when an earlier call is pending, and sends nothing", async () => {
  const { client, engines } = await connectScripted(1);
  const first = failureOf(client.isSleeping({}, { timeoutMs: 20 }));
  await engines[0]?.receive();
  await first;
  const failure = await failureOf(client.isSleeping({}, { timeoutMs: 50 }));
  expect(failure).toMatchObject({ code: "previous_call_pending", engine: 0, stage: "queue" });
  expect(failure.message).toMatch(/engine 0 still owes the reply to a isSleeping given up at \d{4}-/);
  expect(await engines[0]?.receivesWithin(50)).toBe(false);
});

it("survives a second answer, an answer to nothing, and one of the wrong kind", async () => {
  const { client, engines } = await connectScripted(1);
  const [engine] = engines;
  const events = client.connection.events();
  const call = client.isSleeping({}, { timeoutMs: 20_000 });
  await engine?.receive();
  await engine?.reply({ $tag: "FlushCacheReqOutput", success: true });
  await engine?.reply({ $tag: "IsSleepingReqOutput", isSleeping: true });
  await engine?.reply({ $tag: "IsSleepingReqOutput", isSleeping: false });
  expect(await call).toMatchObject([{ reply: { isSleeping: true } }]);
  const seen = [await events.next(), await events.next()].map(({ value }) => value);
  expect(seen).toEqual([
    { type: "unexpected_reply", engine: 0, tag: "FlushCacheReqOutput" },
    { type: "unexpected_reply", engine: 0, tag: "IsSleepingReqOutput" },
  ]);
});

it("counts and reports what does not decode or is not known, and goes on", async () => {
  const { client, engines } = await connectScripted(1);
  const [engine] = engines;
  const events = client.connection.events();
  const call = client.isSleeping({}, { timeoutMs: 20_000 });
  await engine?.receive();
  const whole = encodeControlOutput({ $tag: "IsSleepingReqOutput", isSleeping: true });
  await engine?.send(whole.slice(0, -1));
  await engine?.send(Buffer.concat([whole, Buffer.of(0)]));
  await engine?.send(Buffer.of(0xc1));
  await engine?.send(new Uint8Array());
  await engine?.send(whole, whole);
  await engine?.send(Buffer.of(0x91, 0xa3, 0x66, 0x6f, 0x6f));
  await engine?.send(whole);
  expect(await call).toMatchObject([{ reply: { isSleeping: true } }]);
  expect(client.connection.counts).toMatchObject({ malformedMessages: 5, unknownTags: 1 });
  const seen = [];
  for (let index = 0; index < 6; index++) seen.push((await events.next()).value);
  expect(seen.map(({ type }) => type)).toEqual([...Array(5).fill("malformed_message"), "unknown_tag"]);
  expect(seen[5]).toEqual({ type: "unknown_tag", engine: 0, tag: "foo" });
});

it("lets a resume overtake a draining pause", async () => {
  const { client, engines } = await connectScripted(1);
  const [engine] = engines;
  const pause = failureOf(client.pauseScheduler({ mode: "wait" }));
  expect((await engine?.receive())?.$tag).toBe("PauseSchedulerReqInput");
  const resume = client.resumeScheduler();
  expect((await engine?.receive())?.$tag).toBe("ResumeSchedulerReqInput");
  await engine?.reply({ $tag: "PauseSchedulerReqOutput", success: false, message: "resumed before pause drained" });
  await engine?.reply({ $tag: "ResumeSchedulerReqOutput", success: true });
  expect((await pause).code).toBe("operation_failed");
  expect(await resume).toMatchObject([{ reply: { success: true } }]);
});

it("has 2000 calls of four kinds answered in order, each with its own reply", async () => {
  const { client, engines } = await connectScripted(1);
  const [engine] = engines;
  const kinds = ["pauseScheduler", "resumeScheduler", "releaseMemoryOccupation", "resumeMemoryOccupation"] as const;
  const calls = Array.from({ length: 2000 }, (_, index) => client[kinds[index % 4] ?? "pauseScheduler"]());
  const seen: Record<string, number> = {};
  for (let index = 0; index < calls.length; index++) {
    const { $tag } = (await engine?.receive()) ?? { $tag: "IsSleepingReqInput" };
    seen[$tag] = (seen[$tag] ?? 0) + 1;
    await engine?.reply({ $tag: $tag.replace("Input", "Output"), success: true, message: String(seen[$tag]) } as ReturnType<typeof paused>);
  }
  const messages = (await Promise.all(calls)).map(([reply]) => reply?.reply.message);
  expect(messages).toEqual(calls.map((_, index) => String(Math.floor(index / 4) + 1)));
});
