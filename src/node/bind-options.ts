import type { EngineRelease } from "../../generated/tokenspeed/operations.ts";
import { checkRelease } from "../transport/capabilities.ts";
import type { Routing } from "../transport/generation.ts";
import { EngineWireError } from "../wire/errors.ts";
import { anyPortOf, checkBindAddress } from "./address.ts";
import { checkRouting } from "./request-router.ts";

/** Where to bind and which engines to expect. */
export interface BindOptions {
  /**
   * Address of the handshake socket, the one engines are started with; port 0 takes a free one. Default
   * `tcp://127.0.0.1:30500`, the engines' own.
   */
  readonly handshake?: string;
  /** Address of the input socket. Default: the handshake's host and a free port. */
  readonly input?: string;
  /** Address of the output sockets, one for each engine, so its port must be 0. Default: the handshake's host. */
  readonly output?: string;
  /** How many engines to expect, 1 to 65536. */
  readonly count: number;
  /** Index of the first engine, 0 to 65535. Default 0. */
  readonly first?: number;
  /** Host name that engines reach this process under. Needed only when binding a wildcard such as `tcp://0.0.0.0:30500`. */
  readonly advertisedHost?: string;
  /** How long closed sockets may still deliver, in milliseconds; the process lives as long. Default 1000. */
  readonly lingerMs?: number;
  /** Messages that may wait for one engine inside ZeroMQ. Default 1000. */
  readonly sendHighWaterMark?: number;
  /** How long one message may wait for a full engine before the call fails, in milliseconds. Default 5000. */
  readonly sendTimeoutMs?: number;
  /**
   * How long an engine may take to answer the question with which `accept` finds out whether it answers control
   * operations, in milliseconds. Default 5000.
   */
  readonly probeTimeoutMs?: number;
  /** Events that may wait for each reader of `connection.events()`. Default 1024. */
  readonly eventLimit?: number;
  /** Which engine a request goes to that names none. Default `round-robin`. */
  readonly routing?: Routing;
  /** The engines' release, for engines whose registrations do not say it. Default: what each registration says. */
  readonly release?: EngineRelease;
}

/** How long to wait for engines. */
export interface AcceptOptions {
  /** Gives up, and closes the listener, when aborted. */
  readonly signal?: AbortSignal;
  /** Time for all engines to connect, in milliseconds. Default 600000. */
  readonly timeoutMs?: number;
}

/** The options with every default filled in. */
export type ResolvedBindOptions = Required<Omit<BindOptions, "advertisedHost" | "release">> &
  Pick<BindOptions, "advertisedHost" | "release">;

const names: Readonly<Record<keyof BindOptions | keyof AcceptOptions, true>> = {
  handshake: true,
  input: true,
  output: true,
  count: true,
  first: true,
  advertisedHost: true,
  lingerMs: true,
  sendHighWaterMark: true,
  sendTimeoutMs: true,
  probeTimeoutMs: true,
  eventLimit: true,
  routing: true,
  release: true,
  // `connect` hands one object to `bind` and `accept`
  signal: true,
  timeoutMs: true,
};

/** Checks the options and fills in defaults. Throws `invalid_argument`. */
export function resolveBindOptions(options: BindOptions): ResolvedBindOptions {
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(names, name)) continue;
    throw new EngineWireError("invalid_argument", `bind has no option "${name}"; it has ${Object.keys(names).join(", ")}`, { path: name });
  }
  const handshake = options.handshake ?? "tcp://127.0.0.1:30500";
  checkBindAddress(handshake);
  const resolved: ResolvedBindOptions = {
    handshake,
    input: options.input ?? anyPortOf(handshake),
    output: options.output ?? anyPortOf(handshake),
    count: integer("count", options.count, 1, 65_536),
    first: integer("first", options.first ?? 0, 0, 65_535),
    lingerMs: integer("lingerMs", options.lingerMs ?? 1000, 0, 600_000),
    sendHighWaterMark: integer("sendHighWaterMark", options.sendHighWaterMark ?? 1000, 1, 1_000_000),
    sendTimeoutMs: integer("sendTimeoutMs", options.sendTimeoutMs ?? 5000, 1, 600_000),
    probeTimeoutMs: integer("probeTimeoutMs", options.probeTimeoutMs ?? 5000, 1, 600_000),
    eventLimit: integer("eventLimit", options.eventLimit ?? 1024, 1, 1_000_000),
    routing: checkRouting(options.routing ?? "round-robin"),
    ...(options.advertisedHost !== undefined && { advertisedHost: options.advertisedHost }),
    ...(options.release !== undefined && { release: checkRelease(options.release) }),
  };
  checkBindAddress(resolved.input);
  checkBindAddress(resolved.output);
  integer("first + count - 1", resolved.first + resolved.count - 1, 0, 65_535);
  if (resolved.count > 1 && !/^tcp:.*:(0|\*)$/.test(resolved.output)) {
    const why = `cannot serve ${resolved.count} engines, which take one socket each: its port must be 0`;
    throw new EngineWireError("invalid_argument", `output "${resolved.output}" ${why}`, { path: "output", found: resolved.output });
  }
  return resolved;
}

function integer(name: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  const found = typeof value === "number" ? String(value) : typeof value;
  throw new EngineWireError("invalid_argument", `${name} must be an integer from ${least} to ${most}, got ${found}`, {
    path: name,
    expected: `an integer from ${least} to ${most}`,
    found,
  });
}
