// What every kind of connection does (test/behaviours), in Chromium: in a page and in a module worker, each over a relay
// that runs in Node, whose allow list has the page's origin.
import { afterAll, describe, expect, inject, it } from "vitest";
import { connect } from "../../src/web/index.ts";
import { behaviours } from "../behaviours/index.ts";
import { request, sleeping } from "../behaviours/messages.ts";
import { eventually, failureOf, read } from "../behaviours/outcomes.ts";
import { rigOf, runBehaviour } from "../behaviours/rig.ts";
import type { Errand, Outcome } from "./behaviour-worker.ts";
import { RemoteRelay, remoteRig } from "./remote-rig.ts";

declare module "vitest" {
  interface ProvidedContext {
    rigServer: string;
  }
}

const server = inject("rigServer");

describe.each(["memory", "ZeroMQ"])("over a relay over %s, from a page in Chromium", (kind) => {
  it.each(Object.entries(behaviours))("%s", (_, behaviour) => runBehaviour(behaviour, (count) => remoteRig(server, kind, count)));
});

describe.each(["memory", "ZeroMQ"])("over a relay over %s, from a worker in Chromium", (kind) => {
  const worker = new Worker(new URL("./behaviour-worker.ts", import.meta.url), { type: "module" });
  afterAll(() => worker.terminate());
  let errands = 0;

  function errand(behaviour: string): Promise<Outcome> {
    const id = ++errands;
    return new Promise((resolve, reject) => {
      worker.onerror = ({ message }) => reject(new Error(`the worker failed: ${message}`));
      worker.addEventListener("message", function heard({ data }: MessageEvent<Outcome>) {
        if (data.id !== id) return;
        worker.removeEventListener("message", heard);
        resolve(data);
      });
      worker.postMessage({ id, server, kind, behaviour } satisfies Errand);
    });
  }

  it.each(Object.keys(behaviours))("%s", async (behaviour) => {
    const { scope, error } = await errand(behaviour);
    expect(error?.stack).toBeUndefined();
    expect(scope).toBe("DedicatedWorkerGlobalScope");
  });
});

describe("a relay whose allow list has not this page's origin", () => {
  it("refuses it, and the page can tell that a relay is there", async () => {
    const { relay, url } = await RemoteRelay.open(server, "memory", 1, false);
    const failure = await failureOf(connect(url));
    expect(failure).toMatchObject({ code: "forbidden", stage: "connect" });
    expect(failure.message).toContain("its Origin or Host is not allowed");
    relay.close();
  });

  it("is told apart from one that is not there", async () => {
    const { relay, url } = await RemoteRelay.open(server, "memory", 1);
    await (await connect(url)).close();
    relay.close();
    await eventually(async () => expect(await failureOf(connect(url))).toMatchObject({ code: "unreachable", stage: "connect" }));
  });
});

describe("a relay that leaves", () => {
  it("leaves the outcome of what was under way unknown, and what is new waits for it within its own time", async () => {
    const { relay, url } = await RemoteRelay.open(server, "memory", 1);
    const connection = await connect(url);
    const { next, nextAdd } = rigOf(connection, relay, async () => {});
    const call = failureOf(connection.call(sleeping));
    const stream = connection.generate(request);
    await Promise.all([next(0), nextAdd(0)]);
    await relay.leave();
    expect(await call).toMatchObject({ code: "outcome_unknown", operation: "isSleeping", cause: { code: "going_away" } });
    expect((await read(stream)).error).toMatchObject({ code: "outcome_unknown" });
    for await (const status of connection.status()) if (status.state === "waiting") break;
    const failure = await failureOf(connection.call(sleeping, { timeoutMs: 50 }));
    // the reason it left, or what came of dialling again
    expect(["going_away", "unreachable"]).toContain(failure.code);
    expect(failure.stage).toBe("queue");
    await connection.close();
    expect(await failureOf(connection.call(sleeping))).toMatchObject({ code: "closed" });
    relay.close();
  });
});
