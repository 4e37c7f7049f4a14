import type { Server } from "node:http";
import type { ServerOptions as TlsOptions } from "node:https";
import { EngineWireError } from "../wire/errors.ts";
import { isLoopback } from "./addresses.ts";
import type { AuditSink } from "./audit.ts";
import type { RelayLogEntry } from "./context.ts";
import type { Authenticate } from "./identity.ts";
import { type RelayLimits, resolveLimits } from "./limits.ts";

/** How a connection is served. */
export interface ServeOptions {
  /** An HTTP server to attach to, yours to listen with and to close. Default: one of the relay's own. */
  readonly server?: Server;
  /** Address to listen on, for a server of its own. Default `127.0.0.1`. */
  readonly host?: string;
  /** Port to listen on, for a server of its own; 0 takes a free one. Default 30600. */
  readonly port?: number;
  /** Path of the WebSocket. Default `/`. */
  readonly path?: string;
  /** Certificate, key and further settings of a server of its own, which then speaks TLS. Default: it does not. */
  readonly tls?: TlsOptions;
  /** Decides who may do what. Default: whoever reaches the relay may do everything but pass the guard or have bytes unpickled. */
  readonly authenticate?: Authenticate;
  /** Allows to be reached without `authenticate` from other machines. Whoever reaches the relay can stop the engines. Default false. */
  readonly allowAnyoneOnTheNetworkWithoutAuthentication?: boolean;
  /** Origins of pages that may connect, besides the relay's own, such as `https://console.example`. Default none. */
  readonly origins?: readonly string[];
  /** Names under which the relay is reached, with or without a port. IP addresses and `localhost` need none. Default none. */
  readonly hosts?: readonly string[];
  /** Keeps clients out that name no Origin: all that are no pages. Default false. */
  readonly requireOrigin?: boolean;
  /** What is taken from clients. */
  readonly limits?: Partial<RelayLimits>;
  /** Where state-changing and denied calls are written down. Default nowhere. */
  readonly audit?: AuditSink;
  /** Hears what a log should have. Default: nobody does. */
  readonly log?: (entry: RelayLogEntry) => void;
  /** Serves `/metrics` to credentials with the scope `metrics`; needs `prom-client`. Default false. */
  readonly metrics?: boolean;
}

/** The options with defaults. */
export type ResolvedServeOptions = Required<Omit<ServeOptions, "server" | "tls" | "authenticate" | "audit" | "limits">> &
  Pick<ServeOptions, "server" | "tls" | "authenticate" | "audit"> & { readonly limits: RelayLimits };

const names: Readonly<Record<keyof ServeOptions, true>> = {
  server: true,
  host: true,
  port: true,
  path: true,
  tls: true,
  authenticate: true,
  allowAnyoneOnTheNetworkWithoutAuthentication: true,
  origins: true,
  hosts: true,
  requireOrigin: true,
  limits: true,
  audit: true,
  log: true,
  metrics: true,
};

/** Checks options and fills in defaults. Throws `invalid_argument`. */
export function resolveServeOptions(options: ServeOptions): ResolvedServeOptions {
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(names, name)) throw invalid(name, `serve has no option "${name}"; it has ${Object.keys(names).join(", ")}`);
  }
  const { server, tls, authenticate, audit } = options;
  if (server !== undefined && (options.host !== undefined || options.port !== undefined || tls !== undefined))
    throw invalid("server", "host, port and tls are those of a server of the relay's own; give them to your own server");
  if (authenticate !== undefined && typeof authenticate !== "function") throw invalid("authenticate", "authenticate must be a function");
  const port = options.port ?? 30_600;
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw invalid("port", "port must be an integer from 0 to 65535");
  const path = options.path ?? "/";
  if (!path.startsWith("/")) throw invalid("path", `path must begin with "/", got ${JSON.stringify(path)}`);
  for (const origin of options.origins ?? []) {
    if (!/^https?:\/\/[^/]+$/.test(origin) || origin.includes("*"))
      throw invalid("origins", `${JSON.stringify(origin)} is no origin, such as https://console.example; there are no wildcards`);
  }
  const resolved: ResolvedServeOptions = {
    host: options.host ?? "127.0.0.1",
    port,
    path,
    allowAnyoneOnTheNetworkWithoutAuthentication: options.allowAnyoneOnTheNetworkWithoutAuthentication ?? false,
    origins: options.origins ?? [],
    hosts: (options.hosts ?? []).map((host) => host.toLowerCase()),
    requireOrigin: options.requireOrigin ?? false,
    limits: resolveLimits(options.limits),
    log: options.log ?? (() => {}),
    metrics: options.metrics ?? false,
    ...(server !== undefined && { server }),
    ...(tls !== undefined && { tls }),
    ...(authenticate !== undefined && { authenticate }),
    ...(audit !== undefined && { audit }),
  };
  checkReach(resolved, server === undefined ? resolved.host : addressOf(server));
  return resolved;
}

/** Throws `invalid_argument` where an address can be reached from other machines and nobody is asked for a credential. */
export function checkReach(options: ResolvedServeOptions, address: string | undefined): void {
  if (options.authenticate !== undefined || options.allowAnyoneOnTheNetworkWithoutAuthentication) return;
  if (address === undefined || isLoopback(address)) return;
  throw invalid(
    "authenticate",
    `${address} can be reached from other machines, and whoever reaches a relay can stop its engines: give authenticate, or allowAnyoneOnTheNetworkWithoutAuthentication`,
  );
}

function addressOf(server: Server): string | undefined {
  const address = server.address();
  return typeof address === "object" ? address?.address : undefined;
}

function invalid(path: string, message: string): EngineWireError {
  return new EngineWireError("invalid_argument", message, { path });
}
