import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { type AuditEntry, type Relay, serve } from "../../src/relay/index.ts";
import type { SimulatedEngine, SimulatedEngineOptions } from "../../src/testing/index.ts";
import { connectSimulated } from "../contract/simulated-group.ts";

/** Files by their path on the server. */
export type Files = (path: string) => Promise<string | undefined>;

const types: Readonly<Record<string, string>> = { html: "text/html; charset=utf-8", js: "text/javascript", ts: "text/javascript" };

/** Serves files over HTTP; closed with the test. */
export async function serveFiles(files: Files): Promise<{ server: Server; url: string }> {
  const server = createServer(async ({ url = "/" }, response) => {
    const path = url.endsWith("/") ? `${url}index.html` : url;
    const text = await files(path);
    if (text === undefined) response.writeHead(404).end();
    else response.writeHead(200, { "Content-Type": types[path.split(".").at(-1) ?? ""] ?? "text/plain" }).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
}

/** Serves simulated engines through a relay; all is closed with the test. Gives what the relay's audit log was told. */
export async function serveEngines(
  engineOptions: Omit<SimulatedEngineOptions, "handshake">,
  place: { readonly server: Server; readonly path: string } | { readonly port: number; readonly origins: readonly string[] },
): Promise<{ relay: Relay; engine: SimulatedEngine; audited: readonly AuditEntry[] }> {
  const { client, engine } = await connectSimulated(engineOptions);
  const audited: AuditEntry[] = [];
  const relay = await serve(client.connection, { ...place, audit: { write: (entry) => void audited.push(entry) } });
  onTestFinished(() => relay.close("the test is over", { drainMs: 1 }));
  return { relay, engine, audited };
}
