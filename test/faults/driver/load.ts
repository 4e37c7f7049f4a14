import { getEventListeners } from "node:events";
import type { EngineReply } from "../../../src/index.ts";
import { type Setting, same } from "./setting.ts";

/** 10,000 calls at once on four engines, half of them with one signal, some aborted, some with a deadline in the middle. */
export async function manyCalls(setting: Setting): Promise<void> {
  const client = await setting.connect(setting.host(), 4);
  const shared = new AbortController();
  const given = new AbortController();
  const endings = Array.from({ length: 10_000 }, (_, index) => {
    const options = index % 10 === 3 ? { timeoutMs: 1 + (index % 500) } : index % 10 === 6 ? given : index % 2 === 0 ? shared : {};
    const task = { id: setting.id(), answer: "plainly" } as const;
    return setting.ask(client, index % 4, task, "signal" in options ? { signal: options.signal } : options);
  });
  setTimeout(() => given.abort(), 20);
  const codes = new Map<string, number>();
  for (const [index, ending] of (await Promise.all(endings)).entries()) {
    codes.set(ending, (codes.get(ending) ?? 0) + 1);
    const odd = index % 10 === 3 ? ["ok", "timeout", "previous_call_pending"] : index % 10 === 6 ? ["ok", "aborted"] : ["ok"];
    if (!odd.includes(ending)) throw new Error(`call ${index} ended with ${ending}`);
  }
  setting.inject(10_000 - (codes.get("ok") ?? 0));
  same("listeners left on the signals", [shared, given].map(({ signal }) => getEventListeners(signal, "abort").length).join(), "0,0");
  same("a call after them", await setting.ask(client, 0, { id: setting.id(), answer: "plainly" }), "ok");
}

/** An engine that takes nothing more: its calls fail, those of the other engine are all answered. */
export async function fullQueue(setting: Setting): Promise<void> {
  const [stuck, free] = [setting.host(), setting.host()];
  const listener = await setting.bind({ count: 2, sendHighWaterMark: 1, sendTimeoutMs: 100 });
  void stuck.start(listener.handshakeAddress, 0);
  void free.start(listener.handshakeAddress, 1);
  const client = await setting.accept(listener);
  stuck.process.kill("SIGSTOP");
  setting.inject();
  // far more than the kernel's buffers hold
  const big = { id: setting.id(), answer: "plainly", filler: "x".repeat(32_000_000) } as const;
  const first = setting.ask(client, 0, big, { timeoutMs: 20_000 });
  const engines = [0];
  const asked = [
    client.isSleeping({}, { engines, timeoutMs: 20_000 }),
    client.isSchedulerPaused({}, { engines, timeoutMs: 20_000 }),
    client.getInternalState({}, { engines, timeoutMs: 20_000 }),
    client.flushCache({}, { engines, timeoutMs: 20_000 }),
    client.resumeScheduler({}, { engines, timeoutMs: 20_000 }),
  ];
  const failures = Promise.allSettled<unknown>(asked).then((calls) =>
    calls.flatMap((call) => (call.status === "rejected" ? [call.reason] : [])),
  );
  const others = asked.map((call) => setting.count<EngineReply>(call, ([reply]) => reply?.engine === 0));
  const beside = Array.from({ length: 500 }, () => setting.ask(client, 1, { id: setting.id(), answer: "plainly" }));
  same("calls of the other engine", [...new Set(await Promise.all(beside))], ["ok"]);
  stuck.process.kill("SIGCONT");
  setting.inject();
  const endings = await Promise.all([first, ...others]);
  const stages = (await failures).map(({ code, stage, engine }) => `${code} in stage ${stage} of engine ${engine}`);
  same("what could not be handed over", [...new Set(stages)], ["timeout in stage send of engine 0"]);
  same("what was handed over is answered", endings[0], "ok");
  for (let turn = 0; turn < 5; turn++) {
    same("the engine afterwards", await setting.ask(client, 0, { id: setting.id(), answer: "plainly" }), "ok");
    const sleeping = client.isSleeping({}, { engines });
    same("its other lanes", await setting.count(sleeping, ([reply]) => reply?.engine === 0), "ok");
  }
  // what never left owes no reply
  const { unexpectedReplies, lostReplies } = client.connection.counts;
  same("replies of nobody, and replies owed for nothing", [unexpectedReplies, lostReplies], [0, 0]);
}
