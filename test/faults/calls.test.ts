import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { connectScripted, failureOf } from "./scripted-group.ts";

it("sends nothing for a signal that is aborted already", async () => {
  const { client, engines } = await connectScripted(1);
  const failure = await failureOf(client.isSleeping({}, { signal: AbortSignal.abort("no") }));
  expect(failure).toMatchObject({ code: "aborted", cause: "no", stage: "queue" });
  expect(await engines[0]?.receivesWithin(50)).toBe(false);
});

it("rejects at once when the signal aborts, and swallows the reply later", async () => {
  const { client, engines } = await connectScripted(1);
  const controller = new AbortController();
  const call = failureOf(client.isSleeping({}, { signal: controller.signal }));
  await engines[0]?.receive();
  controller.abort(new Error("changed my mind"));
  const failure = await call;
  expect(failure).toMatchObject({ code: "aborted", cause: { message: "changed my mind" }, missing: [0] });
  expect(failure.message).toContain("it may still take effect");
  await engines[0]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: true });
  const next = client.isSleeping();
  await engines[0]?.receive();
  await engines[0]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: false });
  expect(await next).toMatchObject([{ reply: { isSleeping: false } }]);
});

it("leaves no listener on a signal that many calls share", async () => {
  const { client, engines } = await connectScripted(1);
  const { signal } = new AbortController();
  for (let index = 0; index < 50; index++) {
    const call = client.isSleeping({}, { signal, ...(index % 2 === 0 && { timeoutMs: 20_000 }) });
    await engines[0]?.receive();
    await engines[0]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: false });
    await call;
  }
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, "5" as unknown as number])("refuses a timeout of %s", async (timeoutMs) => {
  const { client, engines } = await connectScripted(1);
  const failure = await failureOf(client.isSleeping({}, { timeoutMs }));
  expect(failure).toMatchObject({ code: "invalid_argument", path: "timeoutMs" });
  expect(await engines[0]?.receivesWithin(20)).toBe(false);
});

it.each([
  [{ timeoutMS: 5 }, 'a call has no option "timeoutMS"; it has signal, timeoutMs, engines, release, onReply, guard, caller, onWait'],
  [{ engines: [] }, "must be a list of at least one engine index"],
  [{ engines: [2] }, "has 2, and this connection has 0, 1"],
  [{ engines: 0 }, "must be a list of at least one engine index"],
  [{ signal: {} }, "signal must be an AbortSignal"],
  [null, "the options of a call must be an object"],
])("refuses the options %j", async (options, message) => {
  const { client, engines } = await connectScripted(2);
  const failure = await failureOf(client.isSleeping({}, options as object));
  expect(failure.code).toBe("invalid_argument");
  expect(failure.message).toContain(message);
  expect(await engines[0]?.receivesWithin(20)).toBe(false);
});

it("sends a call to the engines it names, and to no other", async () => {
  const { client, engines } = await connectScripted(2);
  const call = client.isSleeping({}, { engines: [1, 1] });
  await engines[1]?.receive();
  await engines[1]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: false });
  expect((await call).map(({ engine }) => engine)).toEqual([1]);
  expect(await engines[0]?.receivesWithin(20)).toBe(false);
});

it("refuses a gated operation for a part of the engines", async () => {
  const { client, engines } = await connectScripted(2);
  const failure = await failureOf(client.updateWeightFromDisk({ modelPath: "/m" }, { engines: [0] }));
  expect(failure).toMatchObject({ code: "invalid_argument", operation: "updateWeightFromDisk" });
  expect(await engines[0]?.receivesWithin(20)).toBe(false);
});

const big = "x".repeat(100_000_000);
it.each([
  ["a wrong type", "invalid_value", "PauseSchedulerReqInput.mode", (c) => c.pauseScheduler({ mode: 7 as never })],
  ["a mode that does not exist", "invalid_value", "PauseSchedulerReqInput.mode", (c) => c.pauseScheduler({ mode: "pause" as never })],
  ["a 100 MB mode", "invalid_value", "PauseSchedulerReqInput.mode", (c) => c.pauseScheduler({ mode: big as never })],
  ["null for an object", "invalid_value", "PauseSchedulerReqInput", (c) => c.pauseScheduler(null as never)],
  [
    "another request's tag",
    "invalid_value",
    "PauseSchedulerReqInput.$tag",
    (c) => c.pauseScheduler({ $tag: "FlushCacheReqInput" } as never),
  ],
  ["a misspelt property", "unknown_field", "PauseSchedulerReqInput.Mode", (c) => c.pauseScheduler({ Mode: "wait" } as never)],
  ["a missing property", "missing_field", "UpdateWeightFromDiskReqInput.model_path", (c) => c.updateWeightFromDisk({} as never)],
  ["NaN", "invalid_value", "UpdateWeightsFromMooncakeReqInput.version", (c) => mooncake(c, Number.NaN)],
  ["a fraction", "invalid_value", "UpdateWeightsFromMooncakeReqInput.version", (c) => mooncake(c, 1.5)],
  ["an int beyond 2^53", "unsafe_integer", "UpdateWeightsFromMooncakeReqInput.version", (c) => mooncake(c, 2 ** 53)],
  ["a tag that names nothing", "unknown_tag", "$tag", (c) => c.control({ $tag: "NoSuchReqInput" } as never)],
] satisfies [string, string, string, (client: Awaited<ReturnType<typeof connectScripted>>["client"]) => Promise<unknown>][])(
  "refuses %s and sends nothing",
  async (_, code, path, run) => {
    const { client, engines } = await connectScripted(1);
    expect(await failureOf(run(client))).toMatchObject({ code, path });
    expect(await engines[0]?.receivesWithin(20)).toBe(false);
  },
);

function mooncake(client: Awaited<ReturnType<typeof connectScripted>>["client"], version: number): Promise<unknown> {
  return client.updateWeightsFromMooncake({ version, flushCache: true, weightVersion: null });
}

it("carries a 100 MB string to the engine", async () => {
  const { client, engines } = await connectScripted(1);
  const call = client.updateWeightFromDisk({ modelPath: big });
  const request = await engines[0]?.receive();
  expect(request?.$tag === "UpdateWeightFromDiskReqInput" && request.modelPath.length).toBe(big.length);
  await engines[0]?.reply({ $tag: "UpdateWeightFromDiskReqOutput", success: true, message: "" });
  expect(await call).toMatchObject([{ reply: { success: true } }]);
});

it("uses the client's timeouts where a call has none", async () => {
  const { client } = await connectScripted(1, { timeoutsMs: { isSleeping: 30 } });
  expect((await failureOf(client.isSleeping())).message).toContain("within 30 ms");
  expect((await failureOf(client.isSchedulerPaused({}, { timeoutMs: 40 }))).message).toContain("within 40 ms");
});
