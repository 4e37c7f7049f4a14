import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { subprotocol, tokenPrefix } from "../transport/relay/protocol.ts";
import { isLoopback } from "./addresses.ts";
import type { ResolvedServeOptions } from "./options.ts";
import { refuseOrigin } from "./origin.ts";

/** Why an upgrade is refused. */
export interface Refusal {
  readonly status: 400 | 403 | 404 | 426 | 429 | 503;
  readonly reason: string;
}

const texts: Readonly<Record<Refusal["status"], string>> = {
  400: "Bad Request",
  403: "Forbidden",
  404: "Not Found",
  426: "Upgrade Required",
  429: "Too Many Requests",
  503: "Service Unavailable",
};

/** Why a request to upgrade is refused before anything is spoken, or `undefined`. */
export function refuseUpgrade(request: IncomingMessage, options: ResolvedServeOptions): Refusal | undefined {
  const { headers, socket } = request;
  // with a server of somebody else's, this is the first place that knows where a client came in
  const open = options.authenticate === undefined && !options.allowAnyoneOnTheNetworkWithoutAuthentication;
  if (open && !isLoopback(socket.localAddress ?? ""))
    return { status: 403, reason: "without authentication, this relay is for its own machine" };
  const origin = refuseOrigin(headers.host, headers.origin, options);
  if (origin !== undefined) return { status: 403, reason: origin };
  if (!protocolsOf(request).includes(subprotocol)) return { status: 400, reason: `the subprotocol must be ${subprotocol}` };
  return undefined;
}

/** The subprotocols that a client names. */
export function protocolsOf({ headers }: IncomingMessage): readonly string[] {
  return (headers["sec-websocket-protocol"] ?? "").split(",").map((name) => name.trim());
}

/** The credential in the list of subprotocols, if there is one. */
export function tokenOf(request: IncomingMessage): string | undefined {
  const found = protocolsOf(request).find((name) => name.startsWith(tokenPrefix));
  return found === undefined ? undefined : Buffer.from(found.slice(tokenPrefix.length), "base64url").toString("utf8");
}

/** Refuses a request that will not be upgraded. */
export function answerRefusal(stream: Duplex, { status, reason }: Refusal): void {
  const body = `${reason}\n`;
  const head = [
    `HTTP/1.1 ${status} ${texts[status]}`,
    "Connection: close",
    "Content-Type: text/plain; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(status === 426 ? ["Upgrade: websocket"] : []),
  ];
  stream.end(`${head.join("\r\n")}\r\n\r\n${body}`, () => stream.destroy());
}
