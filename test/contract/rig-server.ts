// Serves rigs to whoever runs the behaviours elsewhere, a page or a worker: the engines and the relay are here, in Node, and
// each WebSocket to this server has one rig. Vitest starts it before the tests of its project in the browser.
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import type { Relay } from "../../src/relay/index.ts";
import { decodeAny, encodeAny } from "../../src/wire/index.ts";
import type { Kind } from "../behaviours/rig.ts";
import { type Group, groups } from "./engines.ts";
import { relayed } from "./transports.ts";

/** What a client asks: the kind of group, how many engines, and whether its origin is one that the relay lets in. */
type Opening = readonly [kind: keyof typeof groups, count: number, allowed: boolean];
/** An id for the answer, and what is to be done: at an engine, or by the relay, which leaves. */
type Order = readonly [id: number, what: "take" | "send" | "end" | "leave", engine: number, detail: Kind | Uint8Array | null];

async function obey(
  { engines, relay }: Group & { readonly relay: Relay },
  [, what, engine, detail]: Order,
): Promise<readonly Uint8Array[]> {
  if (what === "take") return engines.take(engine, detail as Kind);
  if (what === "send") await engines.send(engine, detail as Uint8Array);
  else if (what === "end") await engines.end(engine);
  else await relay.close("maintenance", { drainMs: 1 });
  return [];
}

/** Serves one rig until its socket closes. */
async function serveRig(socket: WebSocket, { headers: { origin = "" } }: IncomingMessage): Promise<void> {
  const closed = once(socket, "close");
  const [opening] = (await once(socket, "message")) as [Buffer];
  const [kind, count, allowed] = decodeAny(opening) as Opening;
  const group = await relayed(await groups[kind](count), allowed ? [origin] : []);
  const answer = (id: number, error: string, frames: readonly (Uint8Array | string)[]) => socket.send(encodeAny([id, error, frames]));
  socket.on("message", (bytes: Buffer) => {
    const order = decodeAny(bytes) as Order;
    obey(group, order).then(
      (frames) => answer(order[0], "", frames),
      (error: Error) => answer(order[0], error.message, []),
    );
  });
  answer(0, "", [group.relay.url]);
  await closed;
  await group.close();
}

/** Starts the server; returns what stops it. */
export async function setup({ provide }: { provide(key: "rigServer", url: string): void }): Promise<() => Promise<void>> {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  const rigs = new Set<Promise<void>>();
  server.on("connection", (socket, request) => {
    const rig = serveRig(socket, request);
    rigs.add(rig);
    rig.then(() => rigs.delete(rig), () => socket.close(1011)); // biome-ignore format: one line
  });
  await once(server, "listening");
  provide("rigServer", `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  return async () => {
    for (const client of server.clients) client.terminate();
    await Promise.all(rigs);
    server.close();
  };
}
