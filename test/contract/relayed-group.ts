import { onTestFinished } from "vitest";
import WebSocket from "ws";
import { type Client, createClient } from "../../src/index.ts";
import { type Relay, type ServeOptions, serve } from "../../src/relay/index.ts";
import type { SimulatedEngine, SimulatedEngineOptions } from "../../src/testing/index.ts";
import { type ConnectOptions, connect, type RelayConnection } from "../../src/web/index.ts";
import { connectSimulated } from "./simulated-group.ts";

/** A relay in front of a group of simulated engines. */
export interface RelayedGroup {
  readonly relay: Relay;
  readonly engine: SimulatedEngine;
  /** The client on the engines' side of the relay. */
  readonly near: Client;
  /** A further client of the relay; closed with the test. */
  join(options?: ConnectOptions): Promise<{ readonly client: Client; readonly connection: RelayConnection }>;
}

/** Serves a group of simulated engines; all is closed with the test. */
export async function serveSimulated(
  engineOptions: Omit<SimulatedEngineOptions, "handshake"> = {},
  options: ServeOptions = {},
): Promise<RelayedGroup> {
  const { client: near, engine } = await connectSimulated(engineOptions);
  const relay = await serve(near.connection, { port: 0, ...options });
  onTestFinished(() => relay.close("the test is over", { drainMs: 1 }));
  return {
    relay,
    engine,
    near,
    async join(connectOptions = {}) {
      const connection = await connect(relay.url, { WebSocket, ...connectOptions });
      onTestFinished(() => connection.close());
      return { client: createClient(connection), connection };
    },
  };
}
