import { describe, expect, it, vi } from "vitest";
import { operations } from "../../src/index.ts";
import { failureOf } from "../faults/scripted-group.ts";
import { connectMixed } from "./mixed-group.ts";

const all = Object.keys(operations);

describe("an engine that drops control operations without an answer", () => {
  it("is accepted, and every call to it fails at once", async () => {
    const { client, engines } = await connectMixed([{ control: false }], { probeTimeoutMs: 100 });
    expect(client.connection.engines).toMatchObject([{ state: "up", capabilities: { control: false } }]);
    expect(client.capabilities()).toEqual({
      engines: [{ engine: 0, control: false, dialect: "tagged", release: "0.1.0", operations: [] }],
      operations: [],
    });
    for (const call of [client.isSleeping(), client.pauseScheduler(), client.updateWeightFromDisk({ modelPath: "/m" }, { guard: false })]) {
      const failure = await failureOf(call);
      expect(failure).toMatchObject({ code: "unsupported", stage: "queue", engine: 0 });
      expect(failure.message).toContain("it does not answer control operations over this wire");
    }
    expect(engines[0]?.state().received.size).toBe(0);
  });

  it("does not keep calls from the others", async () => {
    const { client, engines } = await connectMixed([{}, { control: false }], { probeTimeoutMs: 200 });
    const { engines: each, operations: common } = client.capabilities();
    expect(each.map(({ control, operations: names }) => [control, names.length])).toEqual([
      [true, 17],
      [false, 0],
    ]);
    expect(common).toEqual([]);
    expect(await failureOf(client.flushCache())).toMatchObject({ code: "unsupported", engine: 1 });
    expect(engines[0]?.state().received.get("FlushCache")).toBeUndefined();
    expect(await client.flushCache({}, { engines: [0] })).toMatchObject([{ engine: 0, reply: { success: true } }]);
  });

  it("is reported when its state is asked, not thrown", async () => {
    const { client } = await connectMixed([{}, { control: false }], { probeTimeoutMs: 200 });
    const { engines, agree } = await client.state({ refresh: true });
    expect(engines).toMatchObject([{ isPaused: false }, { error: { code: "unsupported" } }]);
    expect(agree).toBe(false);
  });
});

describe("the probe's answer", () => {
  it("turns control on again when it comes after all", async () => {
    const { client } = await connectMixed([{ lateReply: [{ op: "IsSchedulerPaused", times: 1, ms: 1000 }] }], { probeTimeoutMs: 50 });
    expect(client.capabilities().engines).toMatchObject([{ control: false, operations: [] }]);
    expect((await failureOf(client.isSleeping())).code).toBe("unsupported");
    await vi.waitFor(() => expect(client.capabilities().engines).toMatchObject([{ control: true, operations: all }]), 10_000);
    expect(client.capabilities().operations).toEqual(all);
    expect(client.connection.counts).toMatchObject({ lateReplies: 1, unexpectedReplies: 0 });
    expect(await client.isSchedulerPaused()).toMatchObject([{ reply: { isPaused: false } }]);
  });

  it("in time leaves control on", async () => {
    const { client, engines } = await connectMixed([{ lateReply: [{ op: "IsSchedulerPaused", times: 1, ms: 200 }] }]);
    expect(client.capabilities().engines).toMatchObject([{ control: true, operations: all }]);
    expect(engines[0]?.state().received).toEqual(new Map([["IsSchedulerPaused", 1]]));
  });
});

describe("an engine's release", () => {
  it("older than an operation: the call fails at once, and the engine is accepted without a question", async () => {
    const { client, engines } = await connectMixed([{ control: false, registration: { vllmVersion: "tokenspeed-0.0.9" } }, {}]);
    expect(client.capabilities()).toMatchObject({ engines: [{ release: "0.0.9", operations: [] }, { operations: all }], operations: [] });
    const failure = await failureOf(client.pauseScheduler());
    expect(failure).toMatchObject({ code: "unsupported", engine: 0 });
    expect(failure.message).toContain("it is release 0.0.9, and the operation came with 0.1.0");
    expect(engines[1]?.state().received.get("PauseScheduler")).toBeUndefined();
    expect(await client.pauseScheduler({}, { engines: [1] })).toMatchObject([{ reply: { success: true } }]);
  });

  it.each(["tokenspeed-0.1.0", "tokenspeed-0.1.1.post20260920", "tokenspeed-1.0.0"])("%s knows all operations", async (vllmVersion) => {
    const { client } = await connectMixed([{ registration: { vllmVersion } }]);
    expect(client.capabilities().engines).toMatchObject([{ release: /\d+\.\d+\.\d+/.exec(vllmVersion)?.[0], operations: all }]);
  });

  it.each(["", "0.0.9", "tokenspeed-nightly", "tokenspeed-0.1"])("unknown (%j) is taken for one that does", async (vllmVersion) => {
    const { client } = await connectMixed([{ registration: { vllmVersion } }]);
    expect(client.capabilities()).toEqual({
      engines: [{ engine: 0, control: true, dialect: "tagged", operations: all }],
      operations: all,
    });
    expect(await client.isSleeping()).toHaveLength(1);
  });
});
