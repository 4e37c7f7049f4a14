import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { createClient } from "../../src/index.ts";
import { connectScripted, failureOf, listen } from "./scripted-group.ts";

it("ends an engine's calls at its sentinel, with the replies so far, and reports it", async () => {
  const { client, engines } = await connectScripted(2);
  const events = client.connection.events();
  const out = failureOf(client.pauseScheduler());
  const waiting = failureOf(client.pauseScheduler());
  const other = client.isSleeping({}, { engines: [0] });
  for (const engine of engines) await engine.receive();
  await engines[0]?.receive();
  await engines[0]?.reply({ $tag: "PauseSchedulerReqOutput", success: true });
  await engines[0]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: false });
  expect(await other).toHaveLength(1);
  await engines[1]?.sayDead();
  const failure = await out;
  expect(failure).toMatchObject({ code: "engine_dead", engine: 1, missing: [1], replies: [{ engine: 0 }] });
  expect(failure.message).toContain("engine 1 is dead (it shut down)");
  expect(await waiting).toMatchObject({ code: "engine_dead", engine: 1, stage: "queue" });
  expect((await events.next()).value).toMatchObject({ type: "engine_dead", engine: 1 });
  expect(client.connection.engines.map(({ state }) => state)).toEqual(["up", "dead"]);
});

it("sends nothing that waited for an engine when it ends", async () => {
  const { client, engines } = await connectScripted(2);
  const calls = Array.from({ length: 4 }, () => failureOf(client.isSleeping()));
  for (const engine of engines) await engine.receive();
  await engines[1]?.sayDead();
  const failures = await Promise.all(calls);
  expect(failures.map(({ code, stage }) => [code, stage])).toEqual([
    ["engine_dead", "reply"],
    ["engine_dead", "queue"],
    ["engine_dead", "queue"],
    ["engine_dead", "queue"],
  ]);
  // the first one's reply is owed; those behind it never left
  await engines[0]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: false });
  expect(await engines[0]?.receivesWithin(100)).toBe(false);
});

it("refuses calls to a dead engine at once, and still reaches the others", async () => {
  const { client, engines } = await connectScripted(2);
  const events = client.connection.events();
  await engines[1]?.sayDead();
  await events.next();
  const failure = await failureOf(client.isSleeping());
  expect(failure).toMatchObject({ code: "engine_dead", engine: 1, missing: [0, 1] });
  expect(failure.message).toContain("was not sent");
  const call = client.isSleeping({}, { engines: [0] });
  await engines[0]?.receive();
  await engines[0]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: true });
  expect(await call).toMatchObject([{ engine: 0 }]);
});

it("reads all that an engine sent before it went away", async () => {
  const { client, engines } = await connectScripted(1);
  const [engine] = engines;
  const events = client.connection.events();
  const first = client.isSleeping();
  const second = failureOf(client.isSchedulerPaused());
  await engine?.receive();
  await engine?.receive();
  // more than zeromq.js reads in one turn of the event loop, and the loop stands still until all of it, and the end of the
  // connection, has arrived: so the end is seen with messages still unread
  for (let index = 0; index < 5000; index++) await engine?.reply({ $tag: "FlushCacheReqOutput", success: true });
  await engine?.reply({ $tag: "IsSleepingReqOutput", isSleeping: true });
  engine?.close(5000);
  const until = performance.now() + 300;
  while (performance.now() < until);
  expect(await first).toMatchObject([{ reply: { isSleeping: true } }]);
  expect((await second).message).toContain("its connection ended");
  expect(client.connection.counts.unexpectedReplies).toBe(5000);
  for await (const event of events) if (event.type === "engine_dead") break;
  expect(client.connection.engines[0]?.state).toBe("dead");
});

it("notices an engine that is killed in the middle of a call", async () => {
  const listener = await listen();
  const program = fileURLToPath(new URL("silent-engine.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", "tsx", program, listener.handshakeAddress], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const client = createClient(await listener.accept({ timeoutMs: 20_000 }));
  const call = failureOf(client.pauseScheduler({ mode: "wait" }));
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  expect(await call).toMatchObject({ code: "engine_dead", engine: 0, stage: "reply" });
});

it("does not take a stray connection to an output for the end of its engine", async () => {
  const { client, engines } = await connectScripted(1);
  const [, port = ""] = /:(\d+)$/.exec(engines[0]?.init?.addresses.outputs[0] ?? "") ?? [];
  const { connect } = await import("node:net");
  for (const text of ["", "GET / HTTP/1.1\r\nHost: engine\r\n\r\n".repeat(10)]) {
    const socket = connect(Number(port), "127.0.0.1");
    await once(socket, "connect");
    socket.end(text);
    await new Promise((resolve) =>
      socket
        .on("close", resolve)
        .on("error", () => {})
        .resume(),
    );
  }
  const call = client.isSleeping({}, { timeoutMs: 20_000 });
  await engines[0]?.receive();
  await engines[0]?.reply({ $tag: "IsSleepingReqOutput", isSleeping: false });
  expect(await call).toHaveLength(1);
  expect(client.connection.engines[0]?.state).toBe("up");
});
