import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { encodeReply, encodeWelcome } from "../../generated/relay/encoders.ts";
import { encodeControlOutput, encodePauseSchedulerReqInput } from "../../src/messages.ts";
import { connect, openLink, type WebSocketClass } from "../../src/web/index.ts";
import { randomOf } from "../faults/random.ts";
import { failureOf } from "../faults/scripted-group.ts";

/** A WebSocket that a test moves. Its members are set in this order, which matters in a browser. */
class FakeSocket {
  static readonly made: FakeSocket[] = [];
  readonly order: string[] = [];
  readonly sent: Uint8Array[] = [];
  readonly at = performance.now();
  declare onopen?: () => void;
  declare onmessage?: (event: { data: unknown }) => void;
  declare onclose?: (event: { code: number; reason: string }) => void;
  #type = "blob";

  constructor() {
    FakeSocket.made.push(this);
  }

  get binaryType(): string {
    return this.#type;
  }

  set binaryType(type: string) {
    this.order.push("onmessage" in this ? "late" : "early");
    this.#type = type;
  }

  send(bytes: Uint8Array): void {
    this.sent.push(bytes);
  }

  close(): void {}

  async welcome(): Promise<void> {
    this.onopen?.();
    await vi.advanceTimersByTimeAsync(0);
    const limits = { messageBytes: 1000, callsInFlight: 1, callsPerSecond: 1, listLength: 1, streams: 1024, idleMs: 100_000_000 };
    const welcome = encodeWelcome({
      version: 1,
      relay: "0",
      session: "s",
      identity: "x",
      scopes: "read",
      engines: [],
      limits,
      heartbeatMs: 1_000_000_000,
      expiresInMs: null,
    });
    this.onmessage?.({ data: welcome.slice().buffer });
  }

  lose(code = 1006): void {
    this.onclose?.({ code, reason: "" });
  }
}

const options = { WebSocket: FakeSocket as unknown as WebSocketClass, firstDelayMs: 1000, longestDelayMs: 8000, timeoutMs: 1_000_000_000 };
const last = (): FakeSocket => FakeSocket.made.at(-1) as FakeSocket;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
  const random = randomOf(3);
  vi.spyOn(Math, "random").mockImplementation(random);
  FakeSocket.made.length = 0;
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it("W01 the binary type is set before the first message can come", async () => {
  const opening = openLink("ws://relay/", options);
  await last().welcome();
  const link = await opening;
  expect(last().order).toEqual(["early"]);
  expect(last().binaryType).toBe("arraybuffer");
  await link.close();
});

it("W10 clients that lose one relay come back spread over a time that doubles up to its cap", async () => {
  const links = [];
  for (let index = 0; index < 100; index++) {
    const opening = openLink("ws://relay/", options);
    await last().welcome();
    links.push(await opening);
  }
  const delays: number[][] = [];
  for (let round = 0; round < 6; round++) {
    const lost = FakeSocket.made.splice(0);
    const start = performance.now();
    for (const socket of lost) socket.lose();
    await vi.advanceTimersByTimeAsync(8001);
    expect(FakeSocket.made).toHaveLength(100);
    delays.push(FakeSocket.made.map(({ at }) => at - start));
  }
  for (const [round, waits] of delays.entries()) {
    const most = Math.min(8000, 1000 * 2 ** round);
    expect(Math.max(...waits)).toBeLessThanOrEqual(most + 2);
    expect(Math.max(...waits)).toBeGreaterThan(most * 0.8);
    // no tenth of the time has more than a third of the clients
    for (let tenth = 0; tenth < 10; tenth++) {
      expect(waits.filter((wait) => wait >= (most / 10) * tenth && wait < (most / 10) * (tenth + 1)).length).toBeLessThan(34);
    }
  }
  await Promise.all(links.map((link) => link.close()));
});

it("W10 the delay starts anew only after a connection has held", async () => {
  const opening = openLink("ws://relay/", options);
  await last().welcome();
  const link = await opening;
  vi.spyOn(Math, "random").mockReturnValue(1);
  const delayAfter = async (heldMs: number): Promise<number> => {
    await vi.advanceTimersByTimeAsync(heldMs);
    last().lose();
    const { status } = link;
    await vi.advanceTimersByTimeAsync(8001);
    await last().welcome();
    return status.state === "waiting" ? status.delayMs : -1;
  };
  expect(await delayAfter(100)).toBe(1000);
  expect(await delayAfter(100)).toBe(2000);
  expect(await delayAfter(100)).toBe(4000);
  expect(await delayAfter(20_000)).toBe(1000);
  await link.close();
});

it.each([4401, 4406, 4400, 1003])("W10 a close with %i is not tried again", async (code) => {
  const opening = openLink("ws://relay/", options);
  await last().welcome();
  const link = await opening;
  last().lose(code);
  expect((await link.closed).error).toBeDefined();
  await vi.advanceTimersByTimeAsync(100_000);
  expect(FakeSocket.made).toHaveLength(1);
});

it("W10 a call that is out when the connection is lost rejects and is not sent again", async () => {
  const opening = openLink("ws://relay/", options);
  await last().welcome();
  const link = await opening;
  const pausing = failureOf(link.call(encodePauseSchedulerReqInput({ mode: "wait" }), { timeoutMs: 500_000 }));
  expect(last().sent).toHaveLength(2);
  last().lose();
  expect((await pausing).code).toBe("outcome_unknown");
  await vi.advanceTimersByTimeAsync(8001);
  await last().welcome();
  expect(FakeSocket.made).toHaveLength(2);
  // the hello alone
  expect(last().sent).toHaveLength(1);
  await link.close();
});

it("a relay that answers with another operation's reply is not believed", async () => {
  const opening = connect("ws://relay/", options);
  await last().welcome();
  const connection = await opening;
  const asking = failureOf(connection.call({ $tag: "IsSleepingReqInput" }));
  const reply = encodeControlOutput({ $tag: "IsSchedulerPausedReqOutput", isPaused: true });
  last().onmessage?.({ data: encodeReply({ id: 1, engine: 0, reply, durationMs: 1 }).slice().buffer });
  expect(await asking).toMatchObject({ code: "malformed", operation: "isSleeping", found: "IsSchedulerPausedReqOutput" });
  await connection.close();
});
