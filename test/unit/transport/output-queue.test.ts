import { describe, expect, it } from "vitest";
import type { OutputChunk, OutputStream } from "../../../src/transport/generation.ts";
import { OutputQueue } from "../../../src/transport/output-queue.ts";
import { EngineWireError } from "../../../src/wire/errors.ts";

const stream = {} as OutputStream;
const closed = new EngineWireError("closed", "it is over");

function chunk(first: number, tokens = 1): OutputChunk {
  return { outputIds: Array.from({ length: tokens }, (_, index) => first + index) } as unknown as OutputChunk;
}

async function firstIds(queue: OutputQueue, count: number): Promise<(number | undefined)[]> {
  const ids: (number | undefined)[] = [];
  for (let index = 0; index < count; index++) ids.push((await queue.next(stream)).value?.outputIds[0]);
  return ids;
}

describe("a stream's queue", () => {
  it("gives chunks in order, to readers that wait and to those that come later", async () => {
    const queue = new OutputQueue(10);
    const waiting = Promise.all([queue.next(stream), queue.next(stream)]);
    for (let index = 0; index < 5; index++) expect(queue.push(chunk(index))).toBe(true);
    expect((await waiting).map(({ value }) => value?.outputIds[0])).toEqual([0, 1]);
    expect(await firstIds(queue, 3)).toEqual([2, 3, 4]);
  });

  it("ends behind what is queued, for everybody", async () => {
    const queue = new OutputQueue(10);
    queue.push(chunk(7));
    queue.end();
    queue.end(closed);
    expect(await firstIds(queue, 1)).toEqual([7]);
    expect(await queue.next(stream)).toEqual({ value: undefined, done: true });
    expect(await queue.next(stream)).toEqual({ value: undefined, done: true });
  });

  it("ends those who wait, and gives an error once", async () => {
    const queue = new OutputQueue(10);
    const waiting = Promise.allSettled([queue.next(stream), queue.next(stream)]);
    queue.end(closed);
    expect(await waiting).toEqual([
      { status: "rejected", reason: closed },
      { status: "fulfilled", value: { value: undefined, done: true } },
    ]);
    expect(await queue.next(stream)).toEqual({ value: undefined, done: true });
  });

  it("gives an error behind the chunks that came before it", async () => {
    const queue = new OutputQueue(10);
    queue.push(chunk(1));
    queue.end(closed);
    expect(await firstIds(queue, 1)).toEqual([1]);
    await expect(queue.next(stream)).rejects.toBe(closed);
  });

  it.each([
    ["by tokens", 10, 4, 2],
    ["by chunks where they bring no tokens", 3, 0, 3],
    ["but always takes one", 10, 11, 1],
  ])("is bounded %s", async (_, limit, tokens, fit) => {
    const queue = new OutputQueue(limit);
    for (let index = 0; index < fit; index++) expect(queue.push(chunk(index, tokens))).toBe(true);
    expect(queue.push(chunk(fit, tokens))).toBe(false);
    await queue.next(stream);
    expect(queue.push(chunk(fit, tokens))).toBe(true);
  });

  it("keeps no more than its bound while a reader is never quite done", async () => {
    const queue = new OutputQueue(4000);
    queue.push(chunk(0));
    for (let index = 1; index < 10_000; index++) {
      expect(queue.push(chunk(index))).toBe(true);
      expect(await firstIds(queue, 1)).toEqual([index - 1]);
    }
    queue.end();
    expect(await firstIds(queue, 2)).toEqual([9999, undefined]);
  });

  it("forgets what was queued when its reader has left", async () => {
    const queue = new OutputQueue(4);
    for (let index = 0; index < 4; index++) queue.push(chunk(index));
    queue.clear();
    queue.end();
    expect(await queue.next(stream)).toEqual({ value: undefined, done: true });
  });
});
