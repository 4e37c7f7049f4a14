// What every kind of connection is tried on. Neither Node nor a page is needed here: behaviours run in both, and in workers.
import type { Connection } from "../../src/index.ts";
import {
  type BatchTokenIDOutSlimInit,
  type ControlOutputInit,
  type ControlRequest,
  decodeAbortRids,
  decodeControlRequest,
  decodeTokenizedGenerateReqInput,
  encodeControlOutput,
  type TokenizedGenerateReqInput,
} from "../../src/messages.ts";
import { batchOf, type Row } from "./output.ts";

/** What an engine can be sent: an operation, a request to generate, an abort. */
export type Kind = "control" | "add" | "abort";

/** The engines' side of a rig in bytes, so that it may be in another process. */
export interface Engines {
  /** The frames of the next message of a kind that an engine has got, without its type. */
  take(engine: number, kind: Kind): Promise<readonly Uint8Array[]>;
  /** Sends a frame from an engine. */
  send(engine: number, frame: Uint8Array): Promise<void>;
  /** Ends an engine, with its last word. */
  end(engine: number): Promise<void>;
}

/** A connection of some kind, and the engines at its far end, which do what a test tells them. */
export interface Rig {
  readonly connection: Connection;
  /** The next operation that an engine has got. */
  next(engine: number): Promise<ControlRequest>;
  /** The next request to generate that an engine has got. A relay gives it an id of its own. */
  nextAdd(engine: number): Promise<TokenizedGenerateReqInput>;
  /** The next id that an engine was told to abort. */
  nextAbort(engine: number): Promise<string>;
  /** Sends a reply, or any frame, from an engine. */
  send(engine: number, reply: ControlOutputInit | Uint8Array): Promise<void>;
  /** Sends output from an engine, with columns in place of the right ones. */
  sendBatch(engine: number, rows: readonly Row[], columns?: Partial<BatchTokenIDOutSlimInit>): Promise<void>;
  /** Ends an engine, with its last word. */
  end(engine: number): Promise<void>;
  /** Closes all of it. */
  close(): Promise<void>;
}

/** Opens a rig with so many engines; whoever runs the behaviour closes it. */
export type Open = (count: number) => Promise<Rig>;

/** What a connection does, by the sentence that says so. */
export type Behaviours = Readonly<Record<string, (open: Open) => Promise<void>>>;

/** A rig of a connection and its engines; `close` closes both. */
export function rigOf(connection: Connection, engines: Engines, close: () => Promise<void>): Rig {
  const aborts = new Map<number, string[]>();
  return {
    connection,
    async next(engine) {
      return decodeControlRequest((await engines.take(engine, "control"))[0] as Uint8Array);
    },
    async nextAdd(engine) {
      return decodeTokenizedGenerateReqInput([...(await engines.take(engine, "add"))] as [Uint8Array, ...Uint8Array[]]);
    },
    async nextAbort(engine) {
      // one message may abort several
      const known = aborts.get(engine) ?? [];
      aborts.set(engine, known);
      while (known.length === 0) known.push(...decodeAbortRids((await engines.take(engine, "abort"))[0] as Uint8Array));
      return known.shift() as string;
    },
    send: (engine, reply) => engines.send(engine, reply instanceof Uint8Array ? reply : encodeControlOutput(reply)),
    sendBatch: (engine, rows, columns) => engines.send(engine, batchOf(rows, columns)),
    end: (engine) => engines.end(engine),
    close,
  };
}

/** How long a behaviour may take, in milliseconds. */
const mostMs = 20_000;

/** Runs one behaviour and closes what it opened, whatever comes of it: also where it waits for what never comes. */
export async function runBehaviour(behaviour: (open: Open) => Promise<void>, open: Open): Promise<void> {
  const rigs: Rig[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it waits for something that did not come within ${mostMs} ms`)), mostMs);
  });
  try {
    const running = behaviour(async (count) => {
      const rig = await open(count);
      rigs.push(rig);
      return rig;
    });
    await Promise.race([running, late]);
  } finally {
    clearTimeout(timer);
    for (const rig of rigs) await rig.close();
  }
}
