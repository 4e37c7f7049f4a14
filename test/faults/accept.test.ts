import { expect, it } from "vitest";
import { encodeReadyMessage } from "../../src/messages.ts";
import { bind } from "../../src/node/index.ts";
import { failureOf, listen, scriptedEngine } from "./scripted-group.ts";

it("gives the bound addresses, a socket of its own for each engine's output", async () => {
  const listener = await listen({ count: 3 });
  const addresses = [listener.handshakeAddress, listener.inputAddress, ...listener.outputAddresses];
  expect(new Set(addresses).size).toBe(5);
  for (const address of addresses) expect(address).toMatch(/^tcp:\/\/127\.0\.0\.1:[1-9]\d*$/);
});

it("knows its engines by index, from `first` on, and what they registered", async () => {
  const listener = await listen({ count: 2, first: 7 });
  const engines = [scriptedEngine(listener, 8), scriptedEngine(listener, 7)];
  const [connection] = await Promise.all([listener.accept({ timeoutMs: 20_000 }), ...engines.map((engine) => engine.register())]);
  expect(connection.engines).toMatchObject([
    { index: 7, state: "up", registration: { maxModelLen: 4096, vllmVersion: "tokenspeed-0.1.0" } },
    { index: 8, state: "up" },
  ]);
});

it("fails on a second HELLO, naming engine and stage", async () => {
  const listener = await listen({ count: 2 });
  const failure = failureOf(listener.accept({ timeoutMs: 20_000 }));
  const engine = scriptedEngine(listener, 1);
  await engine.hello();
  await engine.hello();
  expect(await failure).toMatchObject({ code: "handshake_failed", engine: 1, stage: "ready" });
});

it("fails on an index that is not expected", async () => {
  const listener = await listen();
  const failure = failureOf(listener.accept({ timeoutMs: 20_000 }));
  await scriptedEngine(listener, 5).hello();
  expect(await failure).toMatchObject({ code: "handshake_failed", engine: 5, stage: "hello" });
});

it("fails on a registration of garbage", async () => {
  const listener = await listen();
  const failure = failureOf(listener.accept({ timeoutMs: 20_000 }));
  const engine = scriptedEngine(listener);
  await engine.hello();
  await engine.ready();
  await engine.sendRegistration(Buffer.from("not msgpack at all"));
  expect(await failure).toMatchObject({ code: "handshake_failed", engine: 0, stage: "registration", cause: { code: "malformed" } });
});

it("fails when an engine ends during the handshake", async () => {
  const listener = await listen({ count: 2 });
  const failure = failureOf(listener.accept({ timeoutMs: 20_000 }));
  const engine = scriptedEngine(listener);
  await engine.hello();
  await engine.ready();
  await engine.sendRegistration(Buffer.of(0x80));
  await engine.connectOutput();
  await engine.sayDead();
  expect(await failure).toMatchObject({ code: "handshake_failed", engine: 0, stage: "output" });
});

it("names the missing engines at the deadline; a registration alone is not enough", async () => {
  const listener = await listen({ count: 2 });
  const failure = failureOf(listener.accept({ timeoutMs: 400 }));
  const engine = scriptedEngine(listener);
  await engine.hello();
  await engine.ready();
  await engine.sendRegistration(Buffer.of(0x80));
  expect(await failure).toMatchObject({ code: "handshake_timeout", engine: 0, stage: "output", missing: [0, 1] });
});

it("stops when its signal aborts, before or meanwhile, or the listener closes", async () => {
  const before = await listen();
  expect(await failureOf(before.accept({ signal: AbortSignal.abort("early") }))).toMatchObject({ code: "aborted", cause: "early" });
  const meanwhile = await listen();
  const controller = new AbortController();
  const aborted = failureOf(meanwhile.accept({ signal: controller.signal }));
  controller.abort("late");
  expect(await aborted).toMatchObject({ code: "aborted", cause: "late" });
  const closing = await listen();
  const closed = failureOf(closing.accept());
  await closing.close();
  expect((await closed).code).toBe("closed");
  expect((await failureOf(closing.accept())).code).toBe("closed");
});

it("accepts once", async () => {
  const listener = await listen();
  const first = failureOf(listener.accept());
  expect((await failureOf(listener.accept())).code).toBe("invalid_argument");
  await listener.close();
  await first;
});

it("names the port that another socket has", async () => {
  const listener = await listen();
  const failure = await failureOf(bind({ handshake: listener.handshakeAddress, count: 1 }));
  expect(failure.code).toBe("address_unavailable");
  expect(failure.message).toContain(`cannot bind ${listener.handshakeAddress}: another process`);
});

it("frees its ports when binding fails half way", async () => {
  const taken = await listen();
  const free = await listen();
  const { handshakeAddress } = free;
  await free.close();
  expect((await failureOf(bind({ handshake: handshakeAddress, input: taken.inputAddress, count: 1 }))).code).toBe("address_unavailable");
  const again = await bind({ handshake: handshakeAddress, count: 1 });
  await again.close();
});

it.each([
  [{ count: 0 }, "count"],
  [{ count: 1.5 }, "count"],
  [{ count: 1, first: 65_536 }, "first"],
  [{ count: 2, first: 65_535 }, "first + count - 1"],
  [{ count: 2, output: "tcp://127.0.0.1:4000" }, "output"],
  [{ count: 1, lingerMs: -1 }, "lingerMs"],
  [{ count: 1, handshake: "localhost:30500" }, undefined],
  [{ count: 1, handshake: "tcp://*:0" }, undefined],
  [{ count: 1, hanshake: "tcp://127.0.0.1:0" }, "hanshake"],
])("refuses to bind with %j", async (options, path) => {
  const failure = await failureOf(bind(options as { count: number }));
  expect(failure.code).toBe("invalid_argument");
  expect(failure.path).toBe(path);
});

it("reports an engine that dials in again instead of failing", async () => {
  const listener = await listen();
  const engine = scriptedEngine(listener);
  const [connection] = await Promise.all([listener.accept({ timeoutMs: 20_000 }), engine.register()]);
  const events = connection.events();
  await engine.sendOnHandshake(encodeReadyMessage({ status: "HELLO" }));
  await engine.sendOnInput(Buffer.of(0x80));
  const seen = [(await events.next()).value, (await events.next()).value];
  expect(seen).toMatchObject([
    { type: "unexpected_message", engine: 0 },
    { type: "unexpected_message", engine: 0 },
  ]);
  expect(seen.map((event) => event.socket).sort()).toEqual(["handshake", "input"]);
});
