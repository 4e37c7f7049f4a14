import type { IncomingMessage, ServerResponse } from "node:http";
import type { RelayCounter } from "./context.ts";
import { checkIdentity } from "./identity.ts";
import { Metrics } from "./metrics.ts";
import type { ResolvedServeOptions } from "./options.ts";
import { refuseOrigin } from "./origin.ts";

/** How a relay is. */
export interface Health {
  readonly stopping: boolean;
  readonly engines: number;
  readonly enginesUp: number;
  /** Whether the audit log takes entries. */
  readonly audited: boolean;
}

/**
 * Answers `/healthz` (the process lives), `/readyz` (state-changing calls can be made: engines are up, the audit log takes
 * entries, it is not stopping) and `/metrics`; false where the request is for something else. The first two tell no more
 * than that, so they ask for no credential.
 */
export function answerHealth(
  request: IncomingMessage,
  response: ServerResponse,
  health: Health,
  options: ResolvedServeOptions,
  metrics: RelayCounter,
): boolean {
  if (request.method !== "GET" && request.method !== "HEAD") return false;
  const say = (status: number, text: string, type = "text/plain; charset=utf-8"): void => {
    response.writeHead(status, { "Content-Type": type, "Cache-Control": "no-store" }).end(text);
  };
  switch ((request.url ?? "").split("?")[0]) {
    case "/healthz":
      say(200, "ok\n");
      return true;
    case "/readyz": {
      const ready = !health.stopping && health.audited && health.engines > 0 && health.enginesUp === health.engines;
      say(ready ? 200 : 503, ready ? "ready\n" : "not ready\n");
      return true;
    }
    case "/metrics":
      if (!(metrics instanceof Metrics)) return false;
      void answerMetrics(request, say, options, metrics);
      return true;
    default:
      return false;
  }
}

async function answerMetrics(
  request: IncomingMessage,
  say: (status: number, text: string, type?: string) => void,
  options: ResolvedServeOptions,
  metrics: Metrics,
): Promise<void> {
  const { host, origin, authorization } = request.headers;
  if (refuseOrigin(host, origin, { ...options, requireOrigin: false }) !== undefined) return say(403, "forbidden\n");
  try {
    if (options.authenticate !== undefined) {
      const [, token] = /^Bearer +(\S+)$/i.exec(authorization ?? "") ?? [];
      const address = request.socket.remoteAddress ?? "";
      const identity = await options.authenticate({
        address,
        ...(token !== undefined && { token }),
        ...(origin !== undefined && { origin }),
      });
      if (identity === undefined) return say(401, "unauthenticated\n");
      const { scopes, expiresAt, withdrawn } = checkIdentity(identity);
      if (withdrawn?.aborted || (expiresAt !== undefined && expiresAt <= Date.now())) return say(401, "unauthenticated\n");
      if (!scopes.includes("metrics")) return say(403, "forbidden\n");
    }
    say(200, await metrics.registry.metrics(), metrics.registry.contentType);
  } catch (error) {
    options.log({ level: "error", message: "the metrics cannot be read", error });
    say(500, "failed\n");
  }
}
