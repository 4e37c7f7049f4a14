import WebSocket from "ws";
import { type Relay, serve } from "../../src/relay/index.ts";
import { connect } from "../../src/web/index.ts";
import { type Open, rigOf } from "../behaviours/rig.ts";
import { type Group, groups } from "./engines.ts";

const authenticate = () =>
  ({ name: "contract", scopes: ["read", "admission", "memory", "weights", "profile", "generate", "unguarded"] }) as const;

/** A relay in front of a group, for pages of these origins; `close` closes both. */
export async function relayed(group: Group, origins: readonly string[] = []): Promise<Group & { readonly relay: Relay }> {
  const relay = await serve(group.connection, { port: 0, authenticate, origins });
  return {
    ...group,
    relay,
    async close() {
      await relay.close("the test is over", { drainMs: 1 });
      await group.close();
    },
  };
}

function direct(open: (count: number) => Promise<Group>): Open {
  return async (count) => {
    const { connection, engines, close } = await open(count);
    return rigOf(connection, engines, close);
  };
}

function throughRelay(open: (count: number) => Promise<Group>): Open {
  return async (count) => {
    const { relay, engines, close } = await relayed(await open(count));
    const connection = await connect(relay.url, { WebSocket });
    return rigOf(connection, engines, async () => {
      await connection.close();
      await close();
    });
  };
}

/** Every kind of connection that Node has, by name. */
export const transports: Readonly<Record<string, Open>> = {
  memory: direct(groups.memory),
  ZeroMQ: direct(groups.ZeroMQ),
  "a relay over memory": throughRelay(groups.memory),
  "a relay over ZeroMQ": throughRelay(groups.ZeroMQ),
};
