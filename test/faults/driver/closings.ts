import { createClient, type EngineReply } from "../../../src/index.ts";
import { FrontendSockets, type SocketHandlers } from "../../../src/node/sockets.ts";
import { isEngineWireError } from "../../../src/wire/errors.ts";
import type { EngineHost, Setting } from "./setting.ts";

/** Microtasks behind each delivery at which a session is closed; all that follows from one has run long before. */
const microtasks = 24;
const patienceMs = 20_000;

/**
 * Closes a session of `accept` and five calls at each of its await points. The client resumes only in microtasks and when a
 * socket delivers something, so the points are: behind each delivery, each of the microtasks that follow. All are taken,
 * one session each, until a session is over before its point.
 */
export async function closings(setting: Setting): Promise<void> {
  const points = new Deliveries();
  const host = setting.host();
  for (let delivery = 0; ; delivery++) {
    let reached = false;
    for (let microtask = 0; microtask <= microtasks; microtask++) {
      reached = await session(setting, host, points, delivery, microtask);
      if (!reached) break;
    }
    if (!reached) return;
  }
}

/** One session; returns whether it was closed at its point. Throws when anything in it is left open or ends otherwise. */
async function session(setting: Setting, host: EngineHost, points: Deliveries, delivery: number, microtask: number): Promise<boolean> {
  const where = `closing at delivery ${delivery}, microtask ${microtask}`;
  const listener = await setting.bind();
  let closed: Promise<void> | undefined;
  points.at(delivery, microtask, () => {
    setting.inject();
    closed = listener.close();
  });
  host.start(listener.handshakeAddress, 0).catch(() => {});
  const open = new Set<string>();
  const watch = <Result>(name: string, promise: Promise<Result>): Promise<Result | undefined> => {
    open.add(name);
    return promise.then(
      (result) => {
        open.delete(name);
        return result;
      },
      (error) => {
        open.delete(name);
        if (isEngineWireError(error) && error.code === "closed") return undefined;
        throw new Error(`${where}: ${name} failed: ${error}`);
      },
    );
  };
  const all = (async () => {
    const connection = await watch("accept", listener.accept({ timeoutMs: 60_000 }));
    if (connection === undefined) return;
    const client = createClient(connection);
    const { signal } = new AbortController();
    const own = ([reply]: readonly EngineReply[]) => reply?.engine === 0;
    const calls: Promise<readonly EngineReply[]>[] = [
      client.isSleeping(),
      client.isSleeping({}, { signal }),
      client.pauseScheduler({ mode: "wait" }),
      client.flushCache({}, { signal }),
      client.resumeScheduler(),
    ];
    await Promise.all(calls.map((call, index) => watch(`call ${index}`, setting.count(call, own).then(judge))));
    if (closed !== undefined) await watch("closed", connection.closed);
  })();
  let patience: NodeJS.Timeout | undefined;
  const impatient = new Promise<never>((_, reject) => {
    patience = setTimeout(() => reject(new Error(`${where}: still open after ${patienceMs} ms: ${[...open].join(", ")}`)), patienceMs);
  });
  try {
    await Promise.race([all, impatient]);
  } finally {
    clearTimeout(patience);
  }
  const reached = closed !== undefined;
  points.forget();
  await (closed ?? listener.close());
  host.stop();
  return reached;
}

/** Passes `ok` and `closed` on; a call may end in no other way. */
function judge(ending: string): void {
  if (ending !== "ok" && ending !== "closed") throw new Error(`a call ended with ${ending}`);
}

/** Counts what the sockets deliver to the frontend: messages, and the news of their connections. */
class Deliveries {
  #wanted = -1;
  #microtask = 0;
  #count = 0;
  #act: () => void = () => {};

  constructor() {
    const count = (): void => this.#delivered();
    const { deliverTo } = FrontendSockets.prototype;
    FrontendSockets.prototype.deliverTo = function (handlers: SocketHandlers) {
      const counted = Object.entries(handlers).map(([name, handle]) => [
        name,
        (...given: unknown[]) => {
          (handle as (...given: unknown[]) => void)(...given);
          count();
        },
      ]);
      deliverTo.call(this, Object.fromEntries(counted) as SocketHandlers);
    };
  }

  /** Does something so many microtasks behind the n-th delivery from now, the 0th being this moment. */
  at(delivery: number, microtask: number, act: () => void): void {
    this.#wanted = delivery;
    this.#microtask = microtask;
    this.#count = -1;
    this.#act = act;
    this.#delivered();
  }

  /** Does nothing any more. */
  forget(): void {
    this.#wanted = -1;
  }

  #delivered(): void {
    if (++this.#count === this.#wanted) void this.#after(this.#microtask);
  }

  async #after(turns: number): Promise<void> {
    for (let turn = 0; turn < turns; turn++) await null;
    this.#act();
  }
}
