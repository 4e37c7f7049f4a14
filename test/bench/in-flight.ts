// Many control calls in flight. A lane lets one call of a kind out per engine, so 64 in flight are 64 engines, which are
// one process here. The bare contestant has what the wire demands of any frontend and no more: the same 64 identities
// behind one ROUTER, whose sends must not overlap, and one PULL for each, with one request out per engine.
import { Pull, Router } from "zeromq";
import { createClient } from "../../src/index.ts";
import { encodeControlOutput, encodeControlRequest, encodeHandshakeInitMessage } from "../../src/messages.ts";
import { bind } from "../../src/node/index.ts";
import { median, type RoundTripRow, spawnEngines } from "./round-trip.ts";

const request = { $tag: "PauseSchedulerReqInput", mode: "keep" } as const;
const reply = { $tag: "PauseSchedulerReqOutput", success: true, message: "" } as const;

/** One frontend's way to ask the engine of an index. */
type Ask = (engine: number, message?: Uint8Array) => Promise<unknown>;

/** Sockets for `count` engines, and the handshake with them. It asks with the request to pause, or with another message. */
export async function bareFrontend(count: number) {
  // an engine that never dials in must end a benchmark, not keep it; nothing is received here later on
  const options = { linger: 0, receiveTimeout: 60_000 };
  const [handshake, input] = [new Router(options), new Router(options)];
  const outputs = Array.from({ length: count }, () => new Pull({ linger: 0 }));
  for (const socket of [handshake, input, ...outputs]) await socket.bind("tcp://127.0.0.1:0");
  const payload = Buffer.from(encodeControlRequest(request));
  const type = Buffer.of(2);
  const identities = outputs.map((_, index) => Buffer.of(index, 0));
  let sending: Promise<unknown> = Promise.resolve();
  const ask: Ask = async (engine, message = payload) => {
    sending = sending.then(() => input.send([identities[engine] ?? "", type, message]));
    await outputs[engine]?.receive();
  };
  const accept = async (): Promise<void> => {
    for (let messages = 0; messages < 2 * count; messages++) {
      const [identity, message] = await handshake.receive();
      if (!message?.includes("HELLO")) continue;
      const output = outputs[identity?.[0] ?? 0]?.lastEndpoint ?? "";
      await handshake.send([
        identity ?? "",
        encodeHandshakeInitMessage({ addresses: { inputs: [input.lastEndpoint ?? ""], outputs: [output] } }),
      ]);
    }
    for (let registrations = 0; registrations < count; registrations++) await input.receive();
  };
  const close = (): void => {
    for (const socket of [handshake, input, ...outputs]) socket.close();
  };
  return { address: handshake.lastEndpoint ?? "", bytes: payload.length, ask, accept, close };
}

/** Microseconds per call with one call out to each engine until each has had `calls`. */
async function slice(ask: Ask, count: number, calls: number): Promise<number> {
  const start = performance.now();
  const line = async (engine: number): Promise<void> => {
    for (let call = 0; call < calls; call++) await ask(engine);
  };
  await Promise.all(Array.from({ length: count }, (_, engine) => line(engine)));
  return ((performance.now() - start) * 1000) / (count * calls);
}

/** Measures `rounds` pairs of slices of `calls` calls to each of `count` engines. */
export async function benchInFlight(count = 64, rounds = 60, calls = 60): Promise<RoundTripRow> {
  const bare = await bareFrontend(count);
  const listener = await bind({ handshake: "tcp://127.0.0.1:0", count, probeTimeoutMs: 20_000 });
  const replies = [
    `${request.$tag}=${Buffer.from(encodeControlOutput(reply)).toString("hex")}`,
    `IsSchedulerPausedReqInput=${Buffer.from(encodeControlOutput({ $tag: "IsSchedulerPausedReqOutput", isPaused: false })).toString("hex")}`,
  ];
  const children = [listener.handshakeAddress, bare.address].map((address) => spawnEngines(address, count, replies));
  try {
    await bare.accept();
    // without the guard, which lets one state-changing call out at a time
    const client = createClient(await listener.accept({ timeoutMs: 60_000 }), { guard: false });
    const typed: Ask = (engine) => client.control(request, { engines: [engine] });
    for (const ask of [bare.ask, typed, bare.ask, typed]) await slice(ask, count, 200);
    const ratios: number[] = [];
    const bareTimes: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const first = round % 2 === 0;
      const before = first ? await slice(bare.ask, count, calls) : await slice(typed, count, calls);
      const after = first ? await slice(typed, count, calls) : await slice(bare.ask, count, calls);
      const [own, other] = first ? [after, before] : [before, after];
      ratios.push(own / other);
      bareTimes.push(other);
    }
    await client.close();
    return { name: `pauseScheduler, ${count} in flight`, bytes: bare.bytes, bareMicroseconds: median(bareTimes), ratio: median(ratios) };
  } finally {
    bare.close();
    await listener.close();
    for (const child of children) child.kill("SIGKILL");
  }
}
