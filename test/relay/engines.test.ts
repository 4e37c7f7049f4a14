// A relay in front of engines that misbehave: their clients are told, and the relay goes on.
import { describe, expect, it } from "vitest";
import { encodePing } from "../../generated/relay/encoders.ts";
import { encodeControlOutput } from "../../src/messages.ts";
import { encodeAny } from "../../src/wire/index.ts";
import { batchOf, type Row } from "../behaviours/output.ts";
import type { ScriptedEngine } from "../faults/scripted-engine.ts";
import { receiveAdd } from "../faults/scripted-output.ts";
import { RawClient } from "./raw-client.ts";
import { serveScripted } from "./scripted-relay.ts";
import { endOf, open, type Taken } from "./stream-messages.ts";

const request = { inputIds: [1, 2, 3], samplingParams: { maxNewTokens: 8 } };

/** Both the relay and its engine answer. */
async function unharmed(relay: { readonly url: string }, engine: ScriptedEngine): Promise<void> {
  const raw = await new RawClient(relay.url).hello();
  raw.call(1, { $tag: "IsSleepingReqInput" });
  expect((await engine.receive()).$tag).toBe("IsSleepingReqInput");
  await engine.reply({ $tag: "IsSleepingReqOutput", isSleeping: false });
  expect((await raw.completed(1)).failure).toBeNull();
  raw.socket.close();
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = { n: value };
  return value;
}

describe("output of an engine", () => {
  it.each([
    ["that is no message", Uint8Array.of(0xc1)],
    ["of another kind", encodeAny(["Surprise", 1])],
    [
      "that claims four billion rows",
      Buffer.concat([Buffer.of(0x98, 0xb3), Buffer.from("BatchTokenIDOutSlim"), Buffer.of(0xdd, 255, 255, 255, 255)]),
    ],
    ["that is nothing", new Uint8Array(0)],
  ])("%s is an event for clients that listen", async (_, bytes) => {
    const { relay, engine } = await serveScripted();
    const raw = await new RawClient(relay.url).hello();
    await engine.send(bytes);
    expect(await raw.take(({ $tag }) => $tag === "Event")).toMatchObject({ type: expect.stringMatching(/malformed_message|unknown_tag/) });
    await unharmed(relay, engine);
  });

  const wrong: readonly [what: string, batch: (row: Row) => Uint8Array][] = [
    ["with columns that differ in length", (row) => batchOf([row], { promptTokens: [] })],
    ["with logprobs for other tokens", (row) => batchOf([row], { outputTokenLogprobsVal: [[-1, -2]], outputTokenLogprobsIdx: [[1]] })],
    ["cut off in the middle", (row) => batchOf([row]).subarray(0, 40)],
  ];
  it.each(wrong)("%s ends its stream with malformed", async (_, batch) => {
    const { relay, engine } = await serveScripted();
    const raw = await new RawClient(relay.url).hello();
    raw.socket.send(open({ id: 1 }, request));
    const { rid } = await receiveAdd(engine);
    await engine.send(batch({ rid: String(rid), ids: [1] }));
    expect(await endOf(raw, 1)).toMatchObject({ failure: { code: "malformed" } });
    await engine.receiveFrames();
    await unharmed(relay, engine);
  });

  it("that nests as deep as it may, and so too deep for a message of the relay's, ends its stream alone", async () => {
    const { relay, engine } = await serveScripted();
    const raw = await new RawClient(relay.url).hello();
    raw.socket.send(open({ id: 1 }, request));
    raw.socket.send(open({ id: 2 }, request));
    const rids = [await receiveAdd(engine), await receiveAdd(engine)].map(({ rid }) => String(rid));
    const rows = rids.map((rid) => ({ rid, ids: [5], finish: "stop" }));
    await engine.send(batchOf(rows, { finishReasonDetails: [{ deep: nested(62) }, { type: "stop" }] } as never));
    expect(await endOf(raw, 1)).toMatchObject({ failure: { code: "nesting_too_deep" } });
    expect(await raw.take<Taken<"StreamChunks">>(({ $tag }) => $tag === "StreamChunks")).toMatchObject({
      ids: [2],
      chunks: [{ outputIds: [5] }],
    });
    expect(await endOf(raw, 2)).toMatchObject({ failure: null });
    await unharmed(relay, engine);
  });

  it("for a request that nobody made is an event, whatever the request is called", async () => {
    const { relay, engine } = await serveScripted();
    const raw = await new RawClient(relay.url).hello();
    const long = "x".repeat(100_000);
    for (const rid of ["nobody", "__proto__", "a\nb\u009b31m", long]) {
      await engine.send(batchOf([{ rid, ids: [1] }]));
      expect(await raw.take(({ $tag }) => $tag === "Event")).toMatchObject({ type: "unexpected_output" });
    }
    await unharmed(relay, engine);
  });

  it("stops with its death, which ends streams and calls", async () => {
    const { relay, engines } = await serveScripted(2);
    const raw = await new RawClient(relay.url).hello();
    raw.socket.send(open({ id: 1, engine: 0 }, request));
    raw.socket.send(open({ id: 2, engine: 1 }, request));
    const [dying, living] = engines as [ScriptedEngine, ScriptedEngine];
    const [, { rid }] = [await receiveAdd(dying), await receiveAdd(living)];
    raw.call(3, { $tag: "IsSleepingReqInput" }, { engines: [0] });
    await dying.receive();
    await dying.sayDead();
    expect(await endOf(raw, 1)).toMatchObject({ failure: { code: "engine_dead", engine: 0 } });
    expect((await raw.completed(3)).failure).toMatchObject({ code: "engine_dead" });
    await living.send(batchOf([{ rid: String(rid), ids: [1], finish: "stop" }]));
    expect(await endOf(raw, 2)).toMatchObject({ failure: null });
    raw.socket.send(open({ id: 4, engine: 0 }, request));
    expect(await endOf(raw, 4)).toMatchObject({ failure: { code: "engine_dead" } });
  });
});

describe("a reply of an engine", () => {
  it("that nests as deep as it may reaches its client", async () => {
    const { relay, engine } = await serveScripted();
    const raw = await new RawClient(relay.url).hello();
    raw.call(1, { $tag: "GetInternalStateReq" });
    await engine.receive();
    await engine.reply({ $tag: "GetInternalStateReqOutput", internalState: { deep: nested(61) } } as never);
    expect((await raw.completed(1)).failure).toBeNull();
    await unharmed(relay, engine);
  });

  it("that is none of the schema's, or another's, fails nobody else's call", async () => {
    const { relay, engine } = await serveScripted();
    const raw = await new RawClient(relay.url).hello();
    raw.call(1, { $tag: "IsSchedulerPausedReqInput" }, { timeoutMs: 200 });
    await engine.receive();
    await engine.send(encodeControlOutput({ $tag: "FlushCacheReqOutput", success: true } as never));
    await engine.send(encodeAny(["IsSchedulerPausedReqOutput", null, null, "perhaps"]));
    expect((await raw.completed(1)).failure?.code).toMatch(/timeout|malformed|invalid_value/);
    await unharmed(relay, engine);
  });
});

describe("the end of a call", () => {
  const told = ({ messages }: RawClient) => messages.filter(({ $tag }) => $tag === "Reply" || $tag === "Completed");

  it("is told by its last reply, and each reply as it comes", async () => {
    const { relay, engines } = await serveScripted(2);
    const raw = await new RawClient(relay.url, { ends: "as they came" }).hello();
    raw.call(1, { $tag: "IsSleepingReqInput" });
    for (const engine of engines) await engine.receive();
    await engines[1]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: false });
    await expect.poll(() => told(raw)).toMatchObject([{ $tag: "Reply", engine: 1, completed: false }]);
    await engines[0]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: true });
    await expect.poll(() => told(raw).slice(1)).toMatchObject([{ $tag: "Reply", engine: 0, completed: true }]);
    // the id is free again, and nothing else was said about the call
    raw.call(1, { $tag: "IsSleepingReqInput" }, { engines: [0, 0] });
    await engines[0]?.receive();
    await engines[0]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: true });
    // more engines named than asked: the end comes by itself
    await expect
      .poll(() => told(raw).slice(2))
      .toMatchObject([
        { $tag: "Reply", engine: 0, completed: false },
        { $tag: "Completed", id: 1, failure: null },
      ]);
  });

  it("comes behind the replies there were, where it failed", async () => {
    const { relay, engines } = await serveScripted(2);
    const raw = await new RawClient(relay.url, { ends: "as they came" }).hello();
    raw.call(1, { $tag: "IsSleepingReqInput" }, { timeoutMs: 300 });
    for (const engine of engines) await engine.receive();
    await engines[0]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: false });
    await expect
      .poll(() => told(raw))
      .toMatchObject([
        { $tag: "Reply", engine: 0, completed: false },
        { $tag: "Completed", id: 1, failure: { code: "timeout", missing: [1] } },
      ]);
  });
});

it("a welcome is the first message, whatever has changed just before", async () => {
  const { relay, engine } = await serveScripted();
  const first = await new RawClient(relay.url).hello();
  const second = await new RawClient(relay.url).opened();
  first.call(1, { $tag: "IsSleepingReqInput" });
  await engine.receive();
  await engine.reply({ $tag: "IsSleepingReqOutput", isSleeping: true });
  await first.completed(1);
  // changes of others' making are gathered for a while: this one is told at the welcome, to all but the one who is welcomed
  await second.hello();
  await first.take(({ $tag }) => $tag === "EnginesChanged");
  second.socket.send(encodePing({ nonce: 1 }));
  await second.take(({ $tag }) => $tag === "Pong");
  expect(second.messages).toEqual([]);
});
