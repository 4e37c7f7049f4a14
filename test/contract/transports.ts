import { onTestFinished } from "vitest";
import WebSocket from "ws";
import type { Connection } from "../../src/index.ts";
import { type ControlOutputInit, type ControlRequest, encodeControlOutput } from "../../src/messages.ts";
import { serve } from "../../src/relay/index.ts";
import { memoryPair } from "../../src/testing/index.ts";
import { connect } from "../../src/web/index.ts";
import { connectScripted } from "../faults/scripted-group.ts";

/** A connection of some kind, and the engines at its far end, which do what a test tells them. */
export interface Rig {
  readonly connection: Connection;
  /** The next request that an engine has got. */
  next(engine: number): Promise<ControlRequest>;
  /** Sends a reply, or bytes, from an engine. */
  send(engine: number, reply: ControlOutputInit | Uint8Array): Promise<void>;
  /** Ends an engine, with its last word. */
  end(engine: number): Promise<void>;
}

async function inMemory(count: number): Promise<Rig> {
  const { connection, requests, send, end } = memoryPair({ count });
  onTestFinished(() => connection.close());
  const taken = new Set<object>();
  return {
    connection,
    async next(engine) {
      for (;;) {
        const found = requests.find((entry) => entry.engine === engine && !taken.has(entry));
        if (found !== undefined) {
          taken.add(found);
          return found.request;
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    async send(engine, reply) {
      send(engine, reply);
    },
    async end(engine) {
      end(engine, "sentinel");
    },
  };
}

async function overZeroMQ(count: number): Promise<Rig> {
  const { client, engines } = await connectScripted(count);
  const at = (engine: number) => {
    const found = engines[engine];
    if (found === undefined) throw new Error(`there is no engine ${engine}`);
    return found;
  };
  return {
    connection: client.connection,
    next: (engine) => at(engine).receive(),
    send: (engine, reply) => at(engine).send(reply instanceof Uint8Array ? reply : encodeControlOutput(reply)),
    end: (engine) => at(engine).sayDead(),
  };
}

async function relayed(rig: Rig): Promise<Rig> {
  const authenticate = () => ({ name: "contract", scopes: ["read", "admission", "memory", "weights", "profile", "unguarded"] }) as const;
  const relay = await serve(rig.connection, { port: 0, authenticate });
  onTestFinished(() => relay.close("the test is over", { drainMs: 1 }));
  const connection = await connect(relay.url, { WebSocket });
  onTestFinished(() => connection.close());
  return { ...rig, connection };
}

/** Every kind of connection, by name. */
export const transports: Readonly<Record<string, (count: number) => Promise<Rig>>> = {
  memory: inMemory,
  ZeroMQ: overZeroMQ,
  "a relay over memory": async (count) => relayed(await inMemory(count)),
  "a relay over ZeroMQ": async (count) => relayed(await overZeroMQ(count)),
};
