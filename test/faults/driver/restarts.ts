import { once } from "node:events";
import { isEngineWireError } from "../../../src/wire/errors.ts";
import { type Setting, same } from "./setting.ts";

/** Engines that dial in wrongly, or again. */
export async function restarts(setting: Setting): Promise<void> {
  await Promise.all([wrongOpenings(setting), restarted(setting)]);
}

async function failure(promise: Promise<unknown>): Promise<{ code?: string; stage?: string | undefined; engine?: number | undefined }> {
  try {
    await promise;
    return {};
  } catch (error) {
    if (!isEngineWireError(error)) throw error;
    const { code, stage, engine } = error;
    return { code, stage, engine };
  }
}

/** A second registration, and an output that leads nowhere although the engine registered: `accept` says which and where. */
async function wrongOpenings(setting: Setting): Promise<void> {
  const host = setting.host();
  const twice = await setting.bind();
  setting.inject();
  void host.start(twice.handshakeAddress, 0, "registers twice");
  const registration = { code: "handshake_failed", stage: "registration", engine: 0 };
  same("a second registration", await failure(twice.accept({ timeoutMs: 60_000 })), registration);
  const dead = await setting.bind();
  setting.inject();
  void host.start(dead.handshakeAddress, 0, "dead output");
  const output = { code: "handshake_timeout", stage: "output", engine: 0 };
  same("an output that leads nowhere", await failure(dead.accept({ timeoutMs: 3000 })), output);
}

/** An engine that is started again under its index: refused while the connection lives, taken by the next `bind`. */
async function restarted(setting: Setting): Promise<void> {
  const listener = await setting.bind();
  const flags = ["--handshake", listener.handshakeAddress];
  const first = setting.engine(...flags);
  const client = await setting.accept(listener);
  const events = client.connection.events();
  setting.inject();
  const second = setting.engine(...flags);
  const { value: refusal } = await events.next();
  same("an engine with a taken index", [refusal.type, refusal.socket, refusal.engine], ["unexpected_message", "handshake", 0]);
  same("what it says", refusal.detail.includes("bind again"), true);
  const load = (path: string) =>
    setting.count(client.updateWeightFromDisk({ modelPath: path }), ([reply]) => reply?.reply.message.endsWith(path) === true);
  same("the engine that has the index", await load("/checkpoints/1"), "ok");
  setting.inject();
  first.process.kill("SIGKILL");
  await once(first.process, "exit");
  same("the end of the first", (await events.next()).value.type, "engine_dead");
  setting.inject();
  // the second one still waits for its answer under the same identity
  const another = setting.engine(...flags);
  const { value: again } = await events.next();
  same("an engine started again", [again.type, again.engine], ["unexpected_message", 0]);
  same("a call after that", await load("/checkpoints/2"), "engine_dead");
  await client.close();
  for (const engine of [second, another]) {
    engine.process.kill("SIGKILL");
    await once(engine.process, "exit");
  }
  const next = await setting.bind({ handshake: listener.handshakeAddress });
  const third = setting.engine(...flags);
  const renewed = await setting.accept(next);
  await third.line("all_ready");
  const sleeping = renewed.isSleeping();
  same("a call to it after a new bind", await setting.count(sleeping, ([reply]) => reply?.reply.isSleeping === false), "ok");
}
