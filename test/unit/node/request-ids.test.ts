import { describe, expect, it } from "vitest";
import { RecentIds } from "../../../src/node/recent-ids.ts";
import { RequestIds } from "../../../src/node/request-ids.ts";

describe("ids that ended just before", () => {
  it.each([0, 1, 500, 999])("are remembered for at least their time when added %i ms into it", (at) => {
    const recent = new RecentIds(1000, 0);
    recent.add("a", at);
    expect(recent.has("a", at)).toBe(true);
    expect(recent.has("a", at + 1000)).toBe(true);
    expect(recent.has("b", at + 1000)).toBe(false);
  });

  it.each([1, 7, 1000])("are forgotten after twice their time, looked at every %i ms", (step) => {
    const recent = new RecentIds(1000, 0);
    recent.add("a", 999);
    for (let now = 999; now < 2999; now += step) recent.has("b", now);
    expect(recent.has("a", 3000)).toBe(false);
  });

  it("are forgotten after a silence", () => {
    const recent = new RecentIds(1000, 0);
    recent.add("a", 10);
    expect(recent.has("a", 2100)).toBe(false);
  });
});

describe("ids of requests", () => {
  it("have one length, so that none is the beginning of another", () => {
    const [ids, others] = [new RequestIds(0), new RequestIds(0)];
    const made = Array.from({ length: 300 }, () => ids.next());
    expect(new Set(made).size).toBe(300);
    expect(new Set(made.map(({ length }) => length))).toEqual(new Set([12]));
    expect([made[0], others.next()].map((id) => id?.slice(4))).toEqual(["00000000", "00000000"]);
  });

  it("are refused for minutes after an abort, and for seconds after their end", () => {
    const ids = new RequestIds(0);
    ids.aborted("aborted", 0);
    ids.finished("finished", 0);
    const refused = expect.objectContaining({ code: "duplicate_request_id", path: "rid" });
    expect(() => ids.check("aborted", 299_999)).toThrow(refused);
    expect(() => ids.check("finished", 9_999)).toThrow(refused);
    expect(() => ids.check("finished", 20_001)).not.toThrow();
    expect(() => ids.check("aborted", 600_001)).not.toThrow();
    expect(() => ids.check("new", 0)).not.toThrow();
  });
});
