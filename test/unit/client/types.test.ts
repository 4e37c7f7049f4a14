import { describe, expectTypeOf, it } from "vitest";
import type { Client, EngineReply } from "../../../src/index.ts";
import type { PauseSchedulerReqOutput, ReplyOf, UpdateWeightFromDiskReqOutput } from "../../../src/messages.ts";

// These hold at compile time: `npm run check` compiles them, and a directive without an error is an error.
describe("the client's types", () => {
  it("give each method its request and its reply", () => {
    expectTypeOf<Client["pauseScheduler"]>().returns.resolves.toEqualTypeOf<readonly EngineReply<PauseSchedulerReqOutput>[]>();
    expectTypeOf<Client["updateWeightFromDisk"]>().parameter(0).toHaveProperty("modelPath").toEqualTypeOf<string>();
    expectTypeOf<ReplyOf<"UpdateWeightFromDiskReqInput">>().toEqualTypeOf<UpdateWeightFromDiskReqOutput>();
  });

  it("refuse what the schema refuses", () => {
    const calls = async (client: Client): Promise<void> => {
      await client.pauseScheduler();
      await client.control({ $tag: "IsSleepingReqInput" }, { timeoutMs: 5 });
      // @ts-expect-error a required field is missing
      await client.updateWeightFromDisk();
      // @ts-expect-error no such mode
      await client.pauseScheduler({ mode: "pause" });
      // @ts-expect-error a misspelt property
      await client.pauseScheduler({ Mode: "wait" });
      // @ts-expect-error a misspelt option
      await client.isSleeping({}, { timeout: 5 });
      // @ts-expect-error no such request
      await client.control({ $tag: "NoSuchReqInput" });
    };
    expectTypeOf(calls).returns.resolves.toBeVoid();
  });
});
