/**
 * The client of a relay, for browsers, workers and Node.
 *
 * @packageDocumentation
 */
import { openConnection, type RelayConnection } from "./connection.ts";
import { RelayLink } from "./link.ts";
import { type ConnectOptions, resolveConnectOptions } from "./link-options.ts";

export type { Limits, Welcome } from "../../generated/relay/types.ts";
export type { RelayConnection } from "./connection.ts";
export type { RelayLink } from "./link.ts";
export type { ConnectOptions, LinkStatus } from "./link-options.ts";
export type { LinkCallOptions, RawReply } from "./pending.ts";
export type { WebSocketClass } from "./socket.ts";

/**
 * Connects to a relay, such as `wss://relay.example/`. Throws `EngineWireError`: `unreachable`, `forbidden`,
 * `unauthenticated`, `version_mismatch`, `limit_exceeded`, `aborted`, `invalid_argument`, `transport_unavailable`.
 */
export async function connect(url: string, options: ConnectOptions = {}): Promise<RelayConnection> {
  return openConnection(url, resolveConnectOptions(options));
}

/**
 * Connects as `connect` does, for pages that must be small: what it gives takes encoded requests and gives encoded replies,
 * so that a bundle holds the codecs of the operations in use and no others. Throws what `connect` throws.
 */
export async function openLink(url: string, options: ConnectOptions = {}): Promise<RelayLink> {
  const link = new RelayLink(url, resolveConnectOptions(options), {});
  await link.open();
  return link;
}
