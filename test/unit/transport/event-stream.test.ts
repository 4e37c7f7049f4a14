import { describe, expect, it } from "vitest";
import { EventStream } from "../../../src/transport/event-stream.ts";

const stream = () => new EventStream<string>(3, (count) => `lost ${count}`);

async function rest(reader: AsyncIterable<string>): Promise<string[]> {
  const values: string[] = [];
  for await (const value of reader) values.push(value);
  return values;
}

describe("an event stream", () => {
  it("gives every reader what is emitted after it came", async () => {
    const events = stream();
    const first = events.read();
    events.emit("a");
    const second = events.read();
    events.emit("b");
    events.end();
    expect(await rest(first)).toEqual(["a", "b"]);
    expect(await rest(second)).toEqual(["b"]);
  });

  it("wakes a waiting reader, in the order of its calls", async () => {
    const events = stream();
    const reader = events.read();
    const both = Promise.all([reader.next(), reader.next()]);
    events.emit("a");
    events.emit("b");
    expect((await both).map(({ value }) => value)).toEqual(["a", "b"]);
  });

  it("drops the oldest of a slow reader and says how many", async () => {
    const events = stream();
    const reader = events.read();
    for (const value of ["a", "b", "c", "d", "e"]) events.emit(value);
    expect((await reader.next()).value).toBe("lost 2");
    expect((await reader.next()).value).toBe("c");
    for (const value of ["f", "g"]) events.emit(value);
    events.end();
    expect(await rest(reader)).toEqual(["lost 1", "e", "f", "g"]);
  });

  it("ends a reader that leaves its loop, and only that one", async () => {
    const events = stream();
    const leaving = events.read();
    const staying = events.read();
    events.emit("a");
    for await (const _ of leaving) break;
    events.emit("b");
    events.end();
    expect(await rest(leaving)).toEqual([]);
    expect(await rest(staying)).toEqual(["a", "b"]);
  });

  it("ends a reader that waits, and one that comes too late", async () => {
    const events = stream();
    const waiting = events.read().next();
    events.end();
    expect(await waiting).toEqual({ value: undefined, done: true });
    expect(await rest(events.read())).toEqual([]);
  });
});
