import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as messages from "../../src/messages.ts";
import { decodeFrames, encodeFrames, structOf } from "../vectors/message.ts";
import { fromHex, toHex } from "../vectors/notation.ts";
import { peerBinary } from "./binaries.ts";
import { codeOf } from "./error-code.ts";
import { LineService } from "./line-service.ts";
import { Msgspec, missing } from "./msgspec-service.ts";
import { oracleView } from "./oracle-view.ts";
import { structSamples } from "./samples.ts";
import { dataPlane } from "./schema-structs.ts";

const seed = Number(process.env.ENGINEWIRE_SEED ?? Date.now() % 2 ** 31);
const count = 300;
const all = [...dataPlane.keys()];

describe.skipIf(missing !== undefined)("the data plane against real msgspec", () => {
  let python: Msgspec;
  const counts = { fromUs: 0, fromPython: 0, unsafe: 0, frames: 0 };
  beforeAll(() => {
    console.log(`data plane, msgspec: seed ${seed} (ENGINEWIRE_SEED repeats it)`);
    python = new Msgspec();
  });
  afterAll(async () => {
    await python.stop();
    console.log(`data plane, msgspec: ${JSON.stringify(counts)}`);
  });

  test.each(all)("%s: Python decodes what we encode to what was given, and encodes it to the same frames", async (name) => {
    const samples = fc.sample(structSamples(name), { seed, numRuns: count });
    const encoded = samples.map(({ give }) => encodeFrames(messages, name, give));
    const sent = encoded.map((frames) => frames.map(toHex));
    const outcomes = await python.ask("decode frames", { type: name, messages: sent });
    const wrong = samples.flatMap(({ see }, index) => {
      const outcome = outcomes[index];
      if (!outcome?.ok) return [`${sent[index]}: ${outcome?.error}`];
      if (outcome.frames.join() !== sent[index]?.join()) return [`${sent[index]} comes back as ${outcome.frames}`];
      if (!isDeepStrictEqual(structOf(name, outcome.value, false), see)) return [`${sent[index]} is another value`];
      return isDeepStrictEqual(decodeFrames(messages, name, encoded[index] ?? []), see) ? [] : [`${sent[index]} decodes to another value`];
    });
    expect(wrong.slice(0, 3)).toEqual([]);
    counts.fromUs += samples.length;
    counts.frames += encoded.reduce((sum, frames) => sum + frames.length - 1, 0);
  });

  test.each(all)("%s: we decode what Python encodes to its value, and encode it to the same frames", async (name) => {
    const made = await python.ask("make frames", { type: name, seed, count });
    const wrong = made.flatMap(({ frames, value, unsafe }) => {
      const given = structOf(name, value, true);
      const received = frames.map(fromHex);
      if (unsafe) {
        counts.unsafe += 1;
        const codes = [codeOf(() => decodeFrames(messages, name, received)), codeOf(() => encodeFrames(messages, name, given))];
        return codes.every((code) => code === "unsafe_integer") ? [] : [`${frames}: ${codes}`];
      }
      if (!isDeepStrictEqual(decodeFrames(messages, name, received), structOf(name, value, false)))
        return [`${frames} decodes to another value`];
      const encoded = encodeFrames(messages, name, given).map(toHex);
      return encoded.join() === frames.join() ? [] : [`the value of ${frames} encodes to ${encoded}`];
    });
    expect(wrong.slice(0, 3)).toEqual([]);
    counts.fromPython += made.length;
  });

  test("what Python refuses in a tensor is refused here", async () => {
    const { encodeAny, Ext } = await import("../../src/wire/index.ts");
    const bytes = new Ext(3, Uint8Array.of(1, 2));
    const tensors: readonly unknown[] = [
      ["uint8", [2], bytes],
      ["uint8", [2], 1],
      ["uint8", [2], 0],
      ["uint8", [2], 2],
      ["uint8", [2], -1],
      ["uint8", [2], new Ext(2, Uint8Array.of(1))],
      ["uint8", [2], Uint8Array.of(1, 2)],
      ["uint8", [2], null],
      ["uint8", [2]],
      ["uint8", [2], bytes, null],
      null,
    ];
    const sent = tensors.map((tensor) => [toHex(encodeAny([1, null, null, null, tensor])), "0102"]);
    const outcomes = await python.ask("decode frames", { type: "MultimodalDataItem", messages: sent });
    const ours = sent.map((frames) => codeOf(() => decodeFrames(messages, "MultimodalDataItem", frames.map(fromHex))));
    expect(ours.map((code) => code === undefined)).toEqual(outcomes.map(({ ok }) => ok));
    expect(outcomes.filter(({ ok }) => ok)).toHaveLength(3);
  });

  test("tensors travelled in frames, both ways, and the exceptions stayed exceptions", () => {
    expect(counts.fromUs).toBe(count * all.length);
    expect(counts.fromPython).toBe(count * all.length);
    expect(counts.frames).toBeGreaterThan(300);
    expect(counts.unsafe).toBeGreaterThan(0);
    expect(counts.unsafe).toBeLessThan(counts.fromPython / 2);
  });
});

const oracle = peerBinary("wire-oracle");

describe.skipIf(oracle === undefined)("the data plane against the Rust wire crate", () => {
  let service: LineService;
  let compared = 0;
  beforeAll(() => {
    console.log(`data plane, wire-oracle: seed ${seed} (ENGINEWIRE_SEED repeats it)`);
    service = new LineService(oracle ?? "", []);
  });
  afterAll(async () => {
    await service.stop();
    console.log(`data plane, wire-oracle: ${compared} messages`);
  });

  /** Sends a message to the crate, and says what it makes of it that is not as it should be. */
  async function compare(command: string, frames: readonly string[], type: string, value: unknown): Promise<string | undefined> {
    compared += 1;
    const answer = JSON.parse(await service.ask(`${command} ${frames.join(",")}`));
    if (!answer.ok) return `${frames}: ${answer.error}`;
    if (answer.frames.join() !== frames.join() || !answer.same) return `${frames} comes back as ${answer.frames}`;
    return isDeepStrictEqual(answer.value, { type, value }) ? undefined : `${frames} is ${JSON.stringify(answer.value)}`;
  }

  test.each([
    ["TokenizedGenerateReqInput", "decode-request", ["00"], "add"],
    ["BatchTokenIDOutSlim", "decode-output", [], "batch"],
  ] as const)("%s: the crate decodes what we encode, and encodes it to the same frames", async (name, command, type, kind) => {
    const wrong: string[] = [];
    for (const { give, see } of fc.sample(structSamples(name), { seed, numRuns: count })) {
      const frames = [...type, ...encodeFrames(messages, name, give).map(toHex)];
      const failure = await compare(command, frames, kind, oracleView({ kind: "struct", name }, see));
      if (failure !== undefined) wrong.push(failure);
    }
    expect(wrong.slice(0, 3)).toEqual([]);
  });

  test("a list of requests to abort is the crate's", async () => {
    for (const rids of fc.sample(fc.array(fc.string({ unit: "grapheme" }), { maxLength: 20 }), { seed, numRuns: 100 })) {
      expect(await compare("decode-request", ["01", toHex(messages.encodeAbortRids(rids))], "abort", rids)).toBeUndefined();
    }
  });

  test("the crate's rows of a batch are ours", async () => {
    const outputIds = [[1, 2], [], [70_000]];
    const columns = { promptTokens: [1, 2, 3], completionTokens: [1, 2, 3], cachedTokens: [0, 0, 1] };
    const batch = messages.encodeBatchTokenIDOutSlim({
      ...columns,
      rids: ["a", "b", "c"],
      outputIds,
      finishedReasons: ["", "stop", "length"],
      outputTokenLogprobsVal: [[], [], []],
      outputTokenLogprobsIdx: [[], [], []],
    });
    const { value } = JSON.parse(await service.ask(`batch-rows ${toHex(batch)}`));
    expect(value.map((row: { rid: string; output_ids: number[] }) => [row.rid, row.output_ids])).toEqual([
      ["a", [1, 2]],
      ["b", []],
      ["c", [70_000]],
    ]);
  });
});
