// Engines that do what a test tells them, in memory and over ZeroMQ, and the connection to them.
import type { Connection } from "../../src/index.ts";
import { encodeAbortRids, encodeControlRequest, encodeTokenizedGenerateReqInput } from "../../src/messages.ts";
import { bind } from "../../src/node/index.ts";
import { memoryPair } from "../../src/testing/index.ts";
import type { Engines, Kind } from "../behaviours/rig.ts";
import { ScriptedEngine } from "../faults/scripted-engine.ts";

/** A connection and the engines at its far end. */
export interface Group {
  readonly connection: Connection;
  readonly engines: Engines;
  close(): Promise<void>;
}

type Frames = readonly Uint8Array[];

/** What one engine has got and nobody has taken yet. */
class Inbox {
  readonly #messages: Record<Kind, Frames[]> = { control: [], add: [], abort: [] };
  readonly #takers: Record<Kind, ((frames: Frames) => void)[]> = { control: [], add: [], abort: [] };

  put(kind: Kind, frames: Frames): void {
    const taker = this.#takers[kind].shift();
    if (taker === undefined) this.#messages[kind].push(frames);
    else taker(frames);
  }

  take(kind: Kind): Promise<Frames> {
    const frames = this.#messages[kind].shift();
    if (frames !== undefined) return Promise.resolve(frames);
    return new Promise((resolve) => this.#takers[kind].push(resolve));
  }
}

function at<Item>(items: readonly Item[], engine: number): Item {
  const found = items[engine];
  if (found === undefined) throw new Error(`there is no engine ${engine}`);
  return found;
}

function inMemory(count: number): Group {
  const inboxes = Array.from({ length: count }, () => new Inbox());
  const { connection, aborts, send, end } = memoryPair({
    count,
    answer(engine, request) {
      at(inboxes, engine).put("control", [encodeControlRequest(request)]);
      return undefined;
    },
    generate(engine, request) {
      at(inboxes, engine).put("add", encodeTokenizedGenerateReqInput(request));
      return [];
    },
  });
  const taken = new Array<number>(count).fill(0);
  let closed = false;
  return {
    connection,
    engines: {
      async take(engine, kind) {
        if (kind !== "abort") return at(inboxes, engine).take(kind);
        const index = taken[engine] as number;
        taken[engine] = index + 1;
        // nobody tells when one comes
        while (!closed) {
          const abort = aborts.filter((entry) => entry.engine === engine)[index];
          if (abort !== undefined) return [encodeAbortRids([abort.rid])];
          await new Promise((resolve) => setImmediate(resolve));
        }
        throw new Error(`engine ${engine} got no abort`);
      },
      send: async (engine, frame) => send(engine, frame),
      end: async (engine) => end(engine, "sentinel"),
    },
    async close() {
      closed = true;
      await connection.close();
    },
  };
}

const kinds: readonly Kind[] = ["add", "abort", "control"];

/** Puts what an engine gets into its inbox until its socket closes. */
async function pump(engine: ScriptedEngine, inbox: Inbox): Promise<void> {
  try {
    for (;;) {
      const [type, ...frames] = await engine.receiveFrames();
      inbox.put(at(kinds, type?.[0] ?? -1), frames);
    }
  } catch {
    // it is closed
  }
}

async function overZeroMQ(count: number): Promise<Group> {
  // aborts of a connection that closes still reach its engines
  const listener = await bind({ handshake: "tcp://127.0.0.1:0", count, lingerMs: 2000 });
  const scripted = Array.from({ length: count }, (_, index) => new ScriptedEngine(listener.handshakeAddress, index));
  const [connection] = await Promise.all([listener.accept({ timeoutMs: 20_000 }), ...scripted.map((engine) => engine.register())]);
  const inboxes = scripted.map(() => new Inbox());
  for (const [index, engine] of scripted.entries()) void pump(engine, at(inboxes, index));
  return {
    connection,
    engines: {
      take: async (engine, kind) => at(inboxes, engine).take(kind),
      send: (engine, frame) => at(scripted, engine).send(frame),
      end: (engine) => at(scripted, engine).sayDead(),
    },
    async close() {
      await listener.close();
      for (const engine of scripted) engine.close();
    },
  };
}

/** Every kind of group, by the name of what is between its two sides. */
export const groups: Readonly<Record<"memory" | "ZeroMQ", (count: number) => Promise<Group>>> = {
  memory: async (count) => inMemory(count),
  ZeroMQ: overZeroMQ,
};
