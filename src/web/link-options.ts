import type { RelayMessage, Welcome } from "../../generated/relay/types.ts";
import type { CloseReason } from "../transport/connection.ts";
import { checkSignal, checkTimeout } from "../transport/timeouts.ts";
import { EngineWireError } from "../wire/errors.ts";
import type { RelaySocket, WebSocketClass } from "./socket.ts";

/** How to reach a relay. */
export interface ConnectOptions {
  /** The credential, or a function that gets one: it is called for every connection that is made. Default: none. */
  readonly token?: string | (() => string | Promise<string>);
  /** Gives the first connection up when aborted; later it closes. */
  readonly signal?: AbortSignal;
  /** The constructor of WebSockets. Default: the platform's; Node 20 has none, there give that of `ws`. */
  readonly WebSocket?: WebSocketClass;
  /** What this client calls itself in the relay's audit log. Default nothing. */
  readonly client?: string;
  /** Time for a connection to be made and welcomed, in milliseconds. Default 10000. */
  readonly timeoutMs?: number;
  /** Longest first delay before connecting again, in milliseconds; it doubles with each failure. Default 500. */
  readonly firstDelayMs?: number;
  /** Longest delay of all, in milliseconds. Default 30000. */
  readonly longestDelayMs?: number;
}

/** How a link to a relay is. */
export type LinkStatus =
  | { readonly state: "connecting" }
  | { readonly state: "open"; readonly session: string }
  /** It connects again after so many milliseconds, because of the error. */
  | { readonly state: "waiting"; readonly delayMs: number; readonly error: EngineWireError }
  | { readonly state: "closed"; readonly reason: CloseReason };

/** What a link tells its owner besides what calls give. */
export interface LinkHandlers {
  /** A connection was made, the first or a further one. */
  readonly welcomed?: (welcome: Welcome) => void;
  /** A message came over a connection that is about no call. */
  readonly other?: (tag: RelayMessage["$tag"], message: Uint8Array, socket: RelaySocket) => void;
  /** A connection has ended. */
  readonly lost?: (socket: RelaySocket, error: EngineWireError) => void;
  /** The link is not as it was. */
  readonly status?: (status: LinkStatus) => void;
}

/** The options with defaults. */
export interface ResolvedConnectOptions {
  readonly token: () => Promise<string | undefined>;
  /** Whether another token may come than the one that was refused. */
  readonly renews: boolean;
  readonly signal: AbortSignal | undefined;
  readonly WebSocket: WebSocketClass;
  readonly client: string;
  readonly timeoutMs: number;
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
}

const names: Readonly<Record<keyof ConnectOptions, true>> = {
  token: true,
  signal: true,
  WebSocket: true,
  client: true,
  timeoutMs: true,
  firstDelayMs: true,
  longestDelayMs: true,
};

/** Checks options and fills in defaults. Throws `invalid_argument`, and `transport_unavailable` where there is no WebSocket. */
export function resolveConnectOptions(options: ConnectOptions): ResolvedConnectOptions {
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(names, name)) continue;
    throw invalid(name, `connect has no option "${name}"; it has ${Object.keys(names).join(", ")}`);
  }
  const { token, signal, client = "" } = options;
  if (token !== undefined && typeof token !== "string" && typeof token !== "function")
    throw invalid("token", "token must be a text or a function that gets one");
  if (typeof client !== "string") throw invalid("client", "client must be a text");
  if (signal !== undefined) checkSignal(signal);
  const Class = options.WebSocket ?? (globalThis as { WebSocket?: WebSocketClass }).WebSocket;
  if (Class === undefined)
    throw new EngineWireError("transport_unavailable", "this platform has no WebSocket: give the one of `ws` as the option WebSocket");
  return {
    token: async () => (typeof token === "function" ? token() : token),
    renews: typeof token === "function",
    signal,
    WebSocket: Class,
    client,
    timeoutMs: checkTimeout(options.timeoutMs ?? 10_000),
    firstDelayMs: checkTimeout(options.firstDelayMs ?? 500),
    longestDelayMs: checkTimeout(options.longestDelayMs ?? 30_000),
  };
}

function invalid(path: string, message: string): EngineWireError {
  return new EngineWireError("invalid_argument", message, { path });
}
