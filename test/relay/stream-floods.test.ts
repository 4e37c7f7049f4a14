// Clients that open streams to do harm.
import { expect, it } from "vitest";
import { decodeStreamOpen } from "../../generated/relay/decoders.ts";
import { encodeCancel, encodeStreamCredit, encodeStreamOpen } from "../../generated/relay/encoders.ts";
import type { StreamOpenInit } from "../../generated/relay/types.ts";
import { batchOf } from "../behaviours/output.ts";
import { serveSimulated } from "../contract/relayed-group.ts";
import { receiveAbort, receiveAdd } from "../faults/scripted-output.ts";
import { RawClient } from "./raw-client.ts";
import { serveScripted } from "./scripted-relay.ts";
import { endOf, open, type Taken } from "./stream-messages.ts";

const short = { inputIds: [1, 2, 3], samplingParams: { maxNewTokens: 5 } };
const endless = { inputIds: [1, 2, 3], samplingParams: { maxNewTokens: 3000 } };

it("opening and giving up without end leaves nothing behind", async () => {
  const { relay, near } = await serveSimulated({ forwardMs: 1 }, { limits: { callsPerSecond: 100_000 } });
  const raw = await new RawClient(relay.url).hello();
  for (let id = 1; id <= 3000; id++) {
    raw.socket.send(open({ id }, endless));
    raw.socket.send(encodeCancel({ id }));
  }
  // those that came before others were gone may be too many
  for (let id = 1; id <= 3000; id++) expect((await endOf(raw, id)).failure?.code).toMatch(/^(aborted|limit_exceeded)$/);
  await expect.poll(() => near.connection.engines[0]?.inFlight).toBe(0);
  raw.socket.send(open({ id: 1 }, short));
  expect(await endOf(raw, 1)).toMatchObject({ failure: null });
});

it("more than there may be in a second fail by their id", async () => {
  const { relay } = await serveSimulated({}, { limits: { callsPerSecond: 5 } });
  const raw = await new RawClient(relay.url).hello();
  for (let id = 1; id <= 10; id++) raw.socket.send(open({ id }, short));
  for (let id = 6; id <= 10; id++)
    expect(await endOf(raw, id)).toMatchObject({ failure: { code: "limit_exceeded", path: "calls_per_second" } });
});

it("credit and cancel for streams that there are not are no mistake, and credit cannot overflow", async () => {
  const { relay } = await serveSimulated();
  const raw = await new RawClient(relay.url).hello();
  for (const id of [0, 77, 0xffff_ffff]) {
    raw.socket.send(encodeStreamCredit({ ids: [id], credits: [0xffff_ffff] }));
    raw.socket.send(encodeCancel({ id }));
  }
  raw.socket.send(open({ id: 1, credit: 0xffff_ffff }, { ...short, samplingParams: { maxNewTokens: 50 } }));
  for (let times = 0; times < 100; times++) raw.socket.send(encodeStreamCredit({ ids: [1], credits: [0xffff_ffff] }));
  expect(await endOf(raw, 1)).toMatchObject({ failure: null });
  // one credit too many would be a message that the protocol has not got
  raw.socket.send(Buffer.from([0x93, 0xac, ...Buffer.from("StreamCredit"), 1, 0xcf, 0, 0, 0, 1, 0, 0, 0, 0]));
  expect((await raw.closed).code).toBe(4400);
});

const refused: readonly [what: string, message: Partial<StreamOpenInit>, code: RegExp][] = [
  [
    "a prompt longer than the limit",
    open({ id: 1 }, { ...short, inputIds: Array.from({ length: 2001 }, () => 1) }) as never,
    /^limit_exceeded$/,
  ],
  ["a request of another kind", { request: Uint8Array.of(0x91, 0xa4, ...Buffer.from("Hack")) }, /^(malformed|unknown_tag)$/],
  ["an engine that there is not", { engine: 65_535 }, /^invalid_argument$/],
];
it.each(refused)("%s is refused by its id", async (_, message, code) => {
  const { relay, join } = await serveSimulated({}, { limits: { listLength: 2000 } });
  const raw = await new RawClient(relay.url).hello();
  const right = { id: 1, credit: 1, engine: null, tensors: [], request: requestOf() };
  raw.socket.send(message instanceof Uint8Array ? message : encodeStreamOpen({ ...right, ...message }));
  expect((await endOf(raw, 1)).failure?.code).toMatch(code);
  await join();
});

function requestOf(): Uint8Array {
  return decodeStreamOpen(open({ id: 1 }, short)).request;
}

it("W05 streams that nobody reads keep the less the more there are", async () => {
  const { relay, engine } = await serveScripted();
  const raw = await new RawClient(relay.url).hello();
  const streams = 100;
  const rids: string[] = [];
  for (let id = 1; id <= streams; id++) {
    raw.socket.send(open({ id, credit: 0 }, endless));
    rids.push(String((await receiveAdd(engine)).rid));
  }
  // 1000 tokens for each: the last has place for 655
  for (let step = 0; step < 100; step++) await engine.send(batchOf(rids.map((rid) => ({ rid, ids: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] }))));
  // before it is given credit: which would let it go on
  while (!(await receiveAbort(engine)).includes(rids.at(-1) ?? ""));
  raw.socket.send(encodeStreamCredit({ ids: [streams], credits: [1000] }));
  expect(await endOf(raw, streams)).toMatchObject({ failure: { code: "slow_consumer" } });
  raw.socket.send(encodeStreamCredit({ ids: [1], credits: [1000] }));
  let tokens = 0;
  while (tokens < 1000) {
    const { chunks } = await raw.take<Taken<"StreamChunks">>((message) => message.$tag === "StreamChunks" && message.ids.includes(1));
    for (const { outputIds } of chunks) tokens += outputIds.length;
  }
});

it("output that is longer than all that may wait reaches a client that reads", async () => {
  const { relay, engine } = await serveScripted(1, { limits: { sendBufferBytes: 20_000 } });
  const raw = await new RawClient(relay.url).hello();
  const rids: string[] = [];
  for (let id = 1; id <= 16; id++) {
    raw.socket.send(open({ id }, short));
    rids.push(String((await receiveAdd(engine)).rid));
  }
  const prompt = Array.from({ length: 3000 }, (_, index) => index);
  const columns = { inputTokenLogprobsVal: rids.map(() => prompt.map(() => -0.5)), inputTokenLogprobsIdx: rids.map(() => prompt) };
  await engine.send(
    batchOf(
      rids.map((rid) => ({ rid, ids: [1], finish: "stop" })),
      columns,
    ),
  );
  for (let id = 1; id <= 16; id++) expect(await endOf(raw, id)).toMatchObject({ failure: null });
  raw.call(20, { $tag: "IsSleepingReqInput" });
  await engine.receive();
  await engine.reply({ $tag: "IsSleepingReqOutput", isSleeping: false });
  expect((await raw.completed(20)).failure).toBeNull();
});
