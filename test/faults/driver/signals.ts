import { type Setting, same } from "./setting.ts";

/** Engines as processes that are killed, crash, end and stand still, each in the middle of a call. */
export async function signals(setting: Setting): Promise<void> {
  await Promise.all([killed(setting), stopped(setting), crashed(setting, "--crash-op"), crashed(setting, "--fault-op")]);
}

/** SIGKILL: the killed engine's calls end, the other engine's do not notice. */
async function killed(setting: Setting): Promise<void> {
  const listener = await setting.bind({ count: 2 });
  const flags = (index: number) => ["--handshake", listener.handshakeAddress, "--index", String(index), "--trace"];
  const victim = setting.engine(...flags(0), "--late-reply", "PauseScheduler=60000");
  setting.engine(...flags(1));
  const client = await setting.accept(listener);
  const events = client.connection.events();
  const pause = setting.count(client.pauseScheduler({ mode: "wait" }, { engines: [0] }), () => false);
  const waiting = setting.count(client.pauseScheduler({ mode: "keep" }, { engines: [0] }), () => false);
  await victim.line('"op":"PauseScheduler"');
  setting.inject();
  victim.process.kill("SIGKILL");
  same("calls of a killed engine", await Promise.all([pause, waiting]), ["engine_dead", "engine_dead"]);
  same("the event", (await events.next()).value.type, "engine_dead");
  const load = client.isSleeping({}, { engines: [1] });
  same("a call of the other one", await setting.count(load, ([reply]) => reply?.engine === 1), "ok");
  same("states", client.connection.engines.map(({ state }) => state).join(), "dead,up");
}

/** SIGSTOP: calls end at their deadlines; after SIGCONT what was owed is swallowed and the lane is free. */
async function stopped(setting: Setting): Promise<void> {
  const host = setting.host();
  const client = await setting.connect(host, 1);
  for (let turn = 0; turn < 2; turn++) {
    // the engine would answer in time; it is stopped before it can
    const id = setting.id();
    const call = setting.ask(client, 0, { id, answer: "late", amount: 1000 }, { timeoutMs: 2000 });
    await host.received(id);
    setting.inject();
    host.process.kill("SIGSTOP");
    same("a call to a stopped engine", await call, "timeout");
    const blocked = await setting.ask(client, 0, { id: setting.id(), answer: "plainly" }, { timeoutMs: 50 });
    same("a call behind it", blocked, "previous_call_pending");
    setting.inject();
    host.process.kill("SIGCONT");
    same("a call after SIGCONT", await setting.ask(client, 0, { id: setting.id(), answer: "plainly" }), "ok");
    same("late replies", client.connection.counts.lateReplies, turn + 1);
  }
}

/** A crash says nothing, a fault says ENGINE_CORE_DEAD; either ends the calls of every rank at once. */
async function crashed(setting: Setting, flag: string): Promise<void> {
  const listener = await setting.bind({ count: 2 });
  setting.engine("--handshake", listener.handshakeAddress, "--ranks", "2", flag, "UpdateWeightFromDisk@1#1");
  const client = await setting.accept(listener);
  setting.inject();
  const load = setting.count(client.updateWeightFromDisk({ modelPath: "/checkpoints/7" }), () => false);
  same(flag, await load, "engine_dead");
}
