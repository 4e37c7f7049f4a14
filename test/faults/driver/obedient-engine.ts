import { operations } from "../../../generated/tokenspeed/operations.ts";
import { type ControlOutputInit, type ControlRequest, encodeControlOutput, encodeEngineCoreReadyResponse } from "../../../src/messages.ts";
import type { ScriptedEngine } from "../scripted-engine.ts";
import type { Manner, Opening, Task } from "./orders.ts";

const replyTags = new Map<string, string>(Object.values(operations).map(({ request, reply }) => [request, reply]));
const halfSentinel = Buffer.from("ENGINE_CORE_DEAF");

/** Takes a scripted engine through the handshake, wrongly if asked to. */
export async function open(engine: ScriptedEngine, opening: Opening): Promise<void> {
  const registration = encodeEngineCoreReadyResponse({ vllmVersion: "tokenspeed-0.1.0" });
  await engine.hello();
  await engine.ready();
  await engine.sendRegistration(registration);
  if (opening === "registers twice") await engine.sendOnInput(registration);
  if (opening === "whole") await engine.connectOutput();
}

/**
 * Answers requests for ever, each setInternalState in the manner it asks for. It keeps the order of a real engine: while
 * one answer is late, it stands still.
 */
export async function serve(engine: ScriptedEngine, received: (id: string) => void): Promise<never> {
  let held: Uint8Array | undefined;
  for (;;) {
    const request = await engine.receive();
    if (request.$tag !== "SetInternalStateReq") {
      await engine.send(encodeControlOutput(plainReply(request, engine.index)));
      if (held !== undefined) await engine.send(held);
      held = undefined;
      continue;
    }
    const task = request.serverArgs as unknown as Task;
    received(task.id);
    const echo = encodeControlOutput({
      $tag: "SetInternalStateReqOutput",
      updated: true,
      serverArgs: { id: task.id, engine: engine.index },
    });
    if (task.answer === "after another kind") held = echo;
    else await answer(engine, task, echo);
  }
}

/** The reply of an engine that has nothing to do. */
function plainReply(request: ControlRequest, index: number): ControlOutputInit {
  const $tag = replyTags.get(request.$tag);
  switch (request.$tag) {
    case "IsSleepingReqInput":
      return { $tag: "IsSleepingReqOutput", isSleeping: false };
    case "IsSchedulerPausedReqInput":
      return { $tag: "IsSchedulerPausedReqOutput", isPaused: false };
    case "GetInternalStateReq":
      return { $tag: "GetInternalStateReqOutput", internalState: { engine: index } };
    case "FlushCacheReqInput":
      return { $tag: "FlushCacheReqOutput", success: true };
    default:
      return { $tag, success: true, message: `engine ${index}` } as ControlOutputInit;
  }
}

async function answer(engine: ScriptedEngine, { answer: manner, amount = 0 }: Task, echo: Uint8Array): Promise<void> {
  if (manner === "never") return;
  if (manner === "with its end") return engine.sayDead();
  if (manner === "late") await new Promise((resolve) => setTimeout(resolve, amount));
  if (manner === "under a flood") return flood(engine, amount, echo);
  const before = framesBefore(manner, echo);
  if (before !== undefined) await engine.send(...before);
  await engine.send(echo);
  if (manner === "twice") await engine.send(echo);
}

/** What goes out before the right reply. */
function framesBefore(manner: Manner, echo: Uint8Array): Uint8Array[] | undefined {
  switch (manner) {
    case "truncated first":
      return [echo.slice(0, -3)];
    case "oversized first":
      return [Buffer.alloc(8_000_000)];
    case "with trailing bytes first":
      return [Buffer.concat([echo, Buffer.of(0xc0)])];
    case "with a wrong tag first":
      return [encodeControlOutput({ $tag: "FlushCacheReqOutput", success: true })];
    case "with an unknown tag first":
      return [Buffer.concat([Buffer.of(0x91, 0xa8), Buffer.from("NoSuchOp")])];
    case "with two frames first":
      return [echo, echo];
    case "with an empty frame first":
      return [new Uint8Array()];
    case "with half a sentinel first":
      return [halfSentinel];
    default:
      return undefined;
  }
}

/** Messages nobody asked for, of three kinds, with the right reply in the middle of them. */
async function flood(engine: ScriptedEngine, messages: number, echo: Uint8Array): Promise<void> {
  const unasked = encodeControlOutput({ $tag: "FlushCacheReqOutput", success: true });
  const kinds = [unasked, Buffer.of(0x91, 0xa3, 0x66, 0x6f, 0x6f), echo.slice(0, -1)];
  for (let index = 0; index < messages; index++) {
    if (index === messages >> 1) await engine.send(echo);
    await engine.send(kinds[index % 3] ?? unasked);
  }
}
