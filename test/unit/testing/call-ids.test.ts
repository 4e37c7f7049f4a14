import { expect, test } from "vitest";
import type { Effect } from "../../../src/testing/group.ts";
import type { EngineMessage } from "../../../src/testing/messages.ts";
import { add, control, VirtualEngine } from "./virtual-engine.ts";

/** A control operation as the call `callId` of the second dialect. */
function call(callId: number, ...operation: Parameters<typeof control>): EngineMessage {
  return { ...control(...operation), callId } as EngineMessage;
}

/** Which call was answered on which rank, and whether it went well. */
function answers(effects: readonly Effect[]): [rank: number, callId: number | undefined, success: unknown][] {
  return effects.flatMap((effect): [number, number | undefined, unknown][] => {
    if (effect.kind === "refusal") return [[effect.rank, effect.callId, effect.message]];
    if (effect.kind !== "reply") return [];
    return [[effect.rank, effect.callId, effect.reply instanceof Uint8Array ? "raw" : (effect.reply as { success?: boolean }).success]];
  });
}

test("a refusal that overtakes a drain names its own call, and the drained one its own", () => {
  const engine = new VirtualEngine({ memorySaver: true });
  engine.round([add("r", 3, 4)]);
  const first = engine.round([call(1, "PauseSchedulerReqInput"), call(2, "PauseSchedulerReqInput")]);
  expect(answers(first)).toEqual([[0, 2, false]]);
  expect(answers(engine.settle())).toEqual([[0, 1, true]]);
});

test("a resume ends the pause or release that drains under its own id", () => {
  const engine = new VirtualEngine({ memorySaver: true });
  engine.round([add("r", 3, 50)]);
  engine.round([call(5, "PauseSchedulerReqInput", { mode: "wait" })]);
  expect(answers(engine.round([call(6, "ResumeSchedulerReqInput")]))).toEqual([
    [0, 5, false],
    [0, 6, true],
  ]);
  engine.round([call(7, "ReleaseMemoryOccupationReqInput")]);
  expect(answers(engine.round([call(8, "ResumeSchedulerReqInput")]))).toEqual([
    [0, 7, false],
    [0, 8, true],
  ]);
});

test("a drained release and the wake after it", () => {
  const engine = new VirtualEngine({ memorySaver: true });
  expect(answers(engine.round([call(11, "ReleaseMemoryOccupationReqInput")]))).toEqual([[0, 11, true]]);
  const woken = engine.round([
    call(2, "ResumeMemoryOccupationReqInput", { tags: ["nccl"] }),
    call(3, "ResumeMemoryOccupationReqInput"),
    call(4, "ResumeMemoryOccupationReqInput"),
  ]);
  expect(answers(woken)).toEqual([
    [0, 2, false],
    [0, 3, true],
    [0, 4, true],
  ]);
});

test("every flush of a round, and loads one after another", () => {
  const engine = new VirtualEngine();
  const effects = engine.settle([
    call(1, "FlushCacheReqInput"),
    call(2, "UpdateWeightFromDiskReqInput"),
    call(3, "FlushCacheReqInput"),
    call(4, "UpdateWeightFromDiskReqInput"),
    call(5, "ProfileReq", { kind: 1, numSteps: null }),
  ]);
  expect(answers(effects)).toEqual([
    [0, 5, true],
    [0, 1, true],
    [0, 3, true],
    [0, 2, true],
    [0, 4, true],
  ]);
});

test("a load refused on arrival overtakes a queued one", () => {
  const engine = new VirtualEngine({ ranks: 2, l3WeightVersion: "1" });
  const refused = engine.settle([call(1, "UpdateWeightFromDiskReqInput", { weightVersion: "2" }), call(2, "UpdateWeightFromDiskReqInput")]);
  expect(answers(refused)).toEqual([[0, 2, false]]);
  expect(answers(engine.settle([], [call(3, "UpdateWeightFromDiskReqInput", { weightVersion: "2" })]))).toEqual([
    [0, 1, true],
    [1, 3, true],
  ]);
});

test("rules of replies: late and twice keep the id, a wrong frame has none, a refused call meets none", () => {
  const engine = new VirtualEngine({
    lateReply: [{ op: "FlushCache", ms: 5 }],
    duplicateReply: [{ op: "ResumeScheduler" }],
    wrongReply: [{ op: "PauseScheduler", reply: Uint8Array.of(0xc0) }],
    dropReply: [{ op: "ResumeMemoryOccupation" }],
  });
  const effects = engine.settle([
    call(1, "ResumeSchedulerReqInput"),
    { kind: "refused_call", callId: 2, method: "x", message: "no" },
    call(3, "PauseSchedulerReqInput", { mode: "keep" }),
    call(4, "ResumeMemoryOccupationReqInput"),
    call(5, "FlushCacheReqInput"),
  ]);
  expect(answers(effects)).toEqual([
    [0, 1, true],
    [0, 1, true],
    [0, 2, "no"],
    [0, undefined, "raw"],
    [0, 5, true],
  ]);
  expect(effects.find((effect) => effect.kind === "reply" && effect.callId === 5)).toMatchObject({ lateMs: 5 });
});
