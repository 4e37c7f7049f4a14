import { EngineWireError } from "../wire/errors.ts";
import { socketErrorCode } from "./zeromq.ts";

// sockaddr_un.sun_path, less the terminating zero
const ipcPathLimit = process.platform === "darwin" ? 103 : 107;

function invalid(address: string, why: string): EngineWireError {
  return new EngineWireError("invalid_argument", `"${address}" is not an address to bind: ${why}`, { found: address });
}

/** Refuses an address that ZeroMQ would fail on later, or silently. Throws `invalid_argument`. */
export function checkBindAddress(address: string): void {
  if (typeof address !== "string") throw invalid(String(address), "expected a string such as tcp://127.0.0.1:0");
  if (address.startsWith("ipc://")) {
    const length = new TextEncoder().encode(address.slice("ipc://".length)).length;
    if (length === 0) throw invalid(address, "it has no path");
    if (length > ipcPathLimit) {
      throw invalid(address, `its path has ${length} bytes and this platform allows ${ipcPathLimit}; use a shorter folder`);
    }
    return;
  }
  const match = /^tcp:\/\/(\[[^\]]+\]|[^:/]+):(\d+|\*)$/.exec(address);
  if (match === null) throw invalid(address, "expected tcp://HOST:PORT or ipc://PATH");
  if (match[2] !== "*" && Number(match[2]) > 65_535) throw invalid(address, `port ${match[2]} is above 65535`);
}

/** The same host with a port that the system chooses, for the sockets engines learn of during the handshake. */
export function anyPortOf(address: string): string {
  const index = address.lastIndexOf(":");
  return address.startsWith("tcp://") ? `${address.slice(0, index)}:0` : "tcp://127.0.0.1:0";
}

const wildcard = /^tcp:\/\/(0\.0\.0\.0|\[::\]|\*):(\d+)$/;

/** What engines are told to connect to: the bound address, with the advertised host in place of a wildcard. Throws `invalid_argument`. */
export function advertise(bound: string, host: string | undefined): string {
  const match = wildcard.exec(bound);
  if (match === null) return bound;
  if (host === undefined) {
    throw invalid(bound, "engines cannot connect to a wildcard; give `advertisedHost`, the name under which they reach this host");
  }
  return `tcp://${host.includes(":") ? `[${host}]` : host}:${match[2]}`;
}

/** Turns a failed bind into an error that names the address. */
export function bindFailed(address: string, cause: unknown): EngineWireError {
  const code = socketErrorCode(cause);
  const why =
    code === "EADDRINUSE"
      ? "another process (or another bind in this one) is using it; stop it or choose another port, 0 for any free one"
      : code === "EACCES"
        ? "this user may not bind it; choose a port above 1023"
        : code === "EADDRNOTAVAIL" || code === "ENODEV"
          ? "this host has no such address; bind an address of its own, or 0.0.0.0 with `advertisedHost`"
          : code === "ENOENT"
            ? "its folder does not exist"
            : String((cause as Error | null)?.message ?? cause);
  return new EngineWireError("address_unavailable", `cannot bind ${address}: ${why}`, { cause, found: address });
}
