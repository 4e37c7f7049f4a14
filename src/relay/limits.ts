import { EngineWireError } from "../wire/errors.ts";

/** What a relay takes. Each limit is a typed error for the call, or closes the connection with a documented code. */
export interface RelayLimits {
  /** Connections at a time. Default 1024. */
  readonly connections: number;
  /** Connections from one address at a time; behind a proxy all share its address. Default 256. */
  readonly connectionsPerAddress: number;
  /** Calls under way of one client. Default 64. */
  readonly callsInFlight: number;
  /** Streams of one client open at a time. Default 1024. */
  readonly streams: number;
  /**
   * Calls and streams begun with one credential from one address in a second, and in one burst, over all its connections; each
   * connection takes four times as many messages of any kind. Default 200.
   */
  readonly callsPerSecond: number;
  /** Longest message of a client, in bytes. Default 1048576. */
  readonly messageBytes: number;
  /** Elements in one list or map of a request. Default 65536. */
  readonly listLength: number;
  /** Bytes that may wait for one client to read them. Default 4194304. */
  readonly sendBufferBytes: number;
  /** Silence after which a connection is closed, in milliseconds. Default 60000. */
  readonly idleMs: number;
  /** Time from connecting until the credential was accepted, in milliseconds. Default 5000. */
  readonly handshakeMs: number;
  /** How long `close` waits for calls under way, in milliseconds. Default 30000. */
  readonly drainMs: number;
}

const defaults: RelayLimits = {
  connections: 1024,
  connectionsPerAddress: 256,
  callsInFlight: 64,
  streams: 1024,
  callsPerSecond: 200,
  messageBytes: 1_048_576,
  listLength: 65_536,
  sendBufferBytes: 4_194_304,
  idleMs: 60_000,
  handshakeMs: 5000,
  drainMs: 30_000,
};

/** Checks limits and fills in defaults. Throws `invalid_argument`. */
export function resolveLimits(given: Partial<RelayLimits> = {}): RelayLimits {
  const limits: Record<string, number> = { ...defaults };
  for (const [name, value] of Object.entries(given)) {
    const known = Object.keys(defaults).join(", ");
    if (!Object.hasOwn(defaults, name))
      throw new EngineWireError("invalid_argument", `there is no limit "${name}"; there are ${known}`, { path: `limits.${name}` });
    if (value === undefined) continue;
    if (!Number.isInteger(value) || value < 1 || value > 2_147_483_647) {
      const found = typeof value === "number" ? String(value) : typeof value;
      const expected = "an integer from 1 to 2147483647";
      throw new EngineWireError("invalid_argument", `limits.${name} must be ${expected}, got ${found}`, {
        path: `limits.${name}`,
        expected,
        found,
      });
    }
    limits[name] = value;
  }
  return limits as unknown as RelayLimits;
}
