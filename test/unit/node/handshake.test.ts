import { describe, expect, it } from "vitest";
import {
  decodeHandshakeInitMessage,
  type EngineCoreReadyResponseInit,
  encodeEngineCoreReadyResponse,
  encodeReadyMessage,
} from "../../../src/messages.ts";
import { Handshake, identityOf } from "../../../src/node/handshake.ts";
import { isEngineWireError } from "../../../src/wire/errors.ts";

const hello = (engine: number) => [identityOf(engine), encodeReadyMessage({ status: "HELLO", local: true, headless: true })];
const ready = (engine: number) => [identityOf(engine), encodeReadyMessage({ status: "READY", local: true, headless: true })];
const registration = (engine: number, init: EngineCoreReadyResponseInit = {}) => [identityOf(engine), encodeEngineCoreReadyResponse(init)];

function handshakeOf(first: number, count: number): Handshake {
  return new Handshake(first, count, (engine) => ({ inputs: ["tcp://in"], outputs: [`tcp://out-${engine}`] }));
}

function failureOf(run: () => unknown) {
  try {
    run();
  } catch (error) {
    if (isEngineWireError(error)) return { code: error.code, engine: error.engine, stage: error.stage, message: error.message };
    throw error;
  }
  return "accepted";
}

describe("a handshake", () => {
  it("is complete when every engine has come all the way, in any order", () => {
    const handshake = handshakeOf(256, 2);
    const steps = [
      () => handshake.receive(hello(257)),
      () => handshake.receive(hello(256)),
      () => handshake.receive(ready(257)),
      () => handshake.register(registration(257, { dataParallelSize: 2, dataParallelRank: 1 })),
      () => handshake.outputConnected(257),
      () => handshake.receive(ready(256)),
      () => handshake.register(registration(256, { dataParallelSize: 2 })),
      () => handshake.outputConnected(256),
    ];
    for (const step of steps) {
      expect(handshake.complete).toBeUndefined();
      step();
    }
    expect([...(handshake.complete?.keys() ?? [])]).toEqual([256, 257]);
  });

  it("answers each HELLO with that engine's own addresses", () => {
    const handshake = handshakeOf(0, 2);
    const [identity, init] = handshake.receive(hello(1)) ?? [];
    expect(identity).toEqual(Uint8Array.of(1, 0));
    expect(decodeHandshakeInitMessage(init ?? new Uint8Array()).addresses).toMatchObject({
      inputs: ["tcp://in"],
      outputs: ["tcp://out-1"],
    });
  });

  it.each([
    ["a second HELLO", 0, "ready", (h: Handshake) => [h.receive(hello(0)), h.receive(hello(0))]],
    ["READY before HELLO", 0, "hello", (h: Handshake) => h.receive(ready(0))],
    ["a second READY", 0, "ready", (h: Handshake) => [h.receive(hello(0)), h.receive(ready(0)), h.receive(ready(0))]],
    ["expected engine 0, got index 7", 7, "hello", (h: Handshake) => h.receive(hello(7))],
    ["expected engine 0, got index 7", 7, "registration", (h: Handshake) => h.register(registration(7))],
    ["an identity of 5 bytes", undefined, "hello", (h: Handshake) => h.receive([new Uint8Array(5), hello(0)[1] as Uint8Array])],
    ["got 3", undefined, "hello", (h: Handshake) => h.receive([...hello(0), new Uint8Array()])],
    ["got 1", undefined, "registration", (h: Handshake) => h.register([identityOf(0)])],
    ["does not decode", 0, "hello", (h: Handshake) => h.receive([identityOf(0), Uint8Array.of(0xc1)])],
    [
      'expected status HELLO or READY, got "BYE"',
      0,
      "hello",
      (h: Handshake) => h.receive([identityOf(0), encodeReadyMessage({ status: "BYE" })]),
    ],
    ["it registered before HELLO", 0, "registration", (h: Handshake) => h.register(registration(0))],
    ["an empty registration", 0, "registration", (h: Handshake) => [h.receive(hello(0)), h.register([identityOf(0), new Uint8Array()])]],
    ["does not decode", 0, "registration", (h: Handshake) => [h.receive(hello(0)), h.register([identityOf(0), Uint8Array.of(1)])]],
    [
      "it registered twice",
      0,
      "registration",
      (h: Handshake) => [h.receive(hello(0)), h.register(registration(0)), h.register(registration(0))],
    ],
    [
      "rank 0 of a data-parallel group of 2",
      0,
      "registration",
      (h: Handshake) => [h.receive(hello(0)), h.register(registration(0, { dataParallelSize: 2 }))],
    ],
  ])("fails on %s", (message, engine, stage, run) => {
    const failure = failureOf(() => run(handshakeOf(0, 1)));
    expect(failure).toMatchObject({ code: "handshake_failed", engine, stage });
    expect((failure as { message: string }).message).toContain(message);
  });

  it("names every engine that is missing at the deadline, and how far each came", () => {
    const handshake = handshakeOf(0, 4);
    handshake.receive(hello(1));
    handshake.receive(hello(2));
    handshake.receive(ready(2));
    for (const frames of [hello(3), ready(3)]) handshake.receive(frames);
    handshake.register(registration(3));
    const error = handshake.timedOut(250);
    expect(error).toMatchObject({ code: "handshake_timeout", engine: 0, stage: "hello", missing: [0, 1, 2, 3] });
    expect(error.message).toContain("engine 0 (waiting for HELLO), engine 1 (waiting for READY)");
    expect(error.message).toContain("engine 2 (waiting for its registration), engine 3 (waiting for its output to connect)");
  });
});
