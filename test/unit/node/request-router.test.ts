import { describe, expect, it } from "vitest";
import { checkRouting, RequestRouter } from "../../../src/node/request-router.ts";
import type { GenerateRequest, RoutableEngine, Routing } from "../../../src/transport/generation.ts";

const ranks = new Map([
  [10, 0],
  [11, 1],
  [12, 2],
  [13, 3],
]);
const indices = [...ranks.keys()];

function engine(index: number, inFlight = 0, kvActivePages?: number): RoutableEngine {
  const load = { running: 0, waiting: 0, kvActivePages: kvActivePages ?? 0, kvTotalPages: 100, ageMs: 0 };
  return { index, dataParallelRank: ranks.get(index) ?? -1, inFlight, ...(kvActivePages !== undefined && { load }) };
}

const request = (fields: object = {}) => fields as GenerateRequest;
const idle = indices.map((index) => engine(index));

function choices(routing: Routing, engines: readonly RoutableEngine[], requests: readonly GenerateRequest[]): number[] {
  const router = new RequestRouter(routing, indices);
  return requests.map((each) => router.choose(each, engines, ranks));
}

describe("routing", () => {
  it("takes each engine in turn", () => {
    expect(
      choices(
        "round-robin",
        idle,
        Array.from({ length: 6 }, () => request()),
      ),
    ).toEqual([10, 11, 12, 13, 10, 11]);
  });

  it("leaves out those that are dead", () => {
    const up = idle.filter(({ index }) => index !== 11);
    expect(
      choices(
        "round-robin",
        up,
        Array.from({ length: 4 }, () => request()),
      ),
    ).toEqual([10, 12, 13, 10]);
  });

  it("takes the one with the fewest in flight, the first of several", () => {
    expect(choices("least-in-flight", [engine(10, 3), engine(11, 1), engine(12, 1)], [request()])).toEqual([11]);
  });

  it("takes the one with the fewest cache pages, then the fewest in flight; one without a report counts as empty", () => {
    const routing = "minimum-cache-usage";
    expect(choices(routing, [engine(10, 0, 9), engine(11, 5, 2), engine(12, 9, 3)], [request()])).toEqual([11]);
    expect(choices(routing, [engine(10, 4, 2), engine(11, 3, 2)], [request()])).toEqual([11]);
    expect(choices(routing, [engine(10, 0, 1), engine(11, 7)], [request()])).toEqual([11]);
  });

  it("takes the engine of a room, up or not", () => {
    const rooms = [0n, 1n, 5, 2n ** 64n - 1n];
    expect(
      choices(
        "bootstrap-room",
        [engine(10)],
        rooms.map((bootstrapRoom) => request({ bootstrapRoom })),
      ),
    ).toEqual([10, 11, 11, 13]);
  });

  it.each([undefined, null, -1n, -3, 1.5, "3"])("refuses the room %s where rooms decide", (bootstrapRoom) => {
    expect(() => choices("bootstrap-room", idle, [request({ bootstrapRoom })])).toThrow(
      expect.objectContaining({ code: "invalid_argument", path: "bootstrapRoom" }),
    );
  });

  it.each(["round-robin", "least-in-flight", "minimum-cache-usage"] as const)("%s stays with a request's rank", (routing) => {
    expect(choices(routing, idle, [request({ dataParallelRank: 2 }), request({ dataParallelRank: 2 })])).toEqual([12, 12]);
    // the engine of that rank is dead: it is named all the same, so that the request fails instead of going elsewhere
    expect(choices(routing, [engine(10)], [request({ dataParallelRank: 3 })])).toEqual([13]);
    expect(() => choices(routing, idle, [request({ dataParallelRank: 9 })])).toThrow(
      expect.objectContaining({ code: "invalid_argument", path: "dataParallelRank" }),
    );
  });

  it("asks a function, which sees the request and the engines that are up", () => {
    const seen: unknown[] = [];
    const routing: Routing = (asked, engines) => {
      seen.push([asked, engines]);
      return 12;
    };
    const asked = request({ rid: "r" });
    expect(choices(routing, idle, [asked])).toEqual([12]);
    expect(seen).toEqual([[asked, idle]]);
  });

  it.each([13, -1, Number.NaN, undefined])("refuses a function's %s, which is none of those it was given", (index) => {
    expect(() => choices(() => index as number, [engine(10)], [request()])).toThrow(
      expect.objectContaining({ code: "invalid_argument", path: "routing" }),
    );
  });

  it("is one that exists", () => {
    expect(checkRouting("round-robin")).toBe("round-robin");
    expect(() => checkRouting("random" as Routing)).toThrow(/routing must be round-robin, .* or a function, got random/);
  });
});
