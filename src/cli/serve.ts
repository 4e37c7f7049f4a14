import type { Command } from "commander";
import { bind } from "../node/index.ts";
import { type AuditFile, auditFile, type RelayLogEntry, serve } from "../relay/index.ts";
import { resolveServeOptions } from "../relay/options.ts";
import { addServeFlags, authenticationOf, type ServeFlags, serveHelp, tlsOf } from "./serve-flags.ts";

/** Adds `enginewire serve`: the process that owns the engines' sockets and serves them to clients. */
export function addServeCommand(program: Command): void {
  const command = program.command("serve").summary("serve engines to browsers and other processes");
  command.description("Waits for engines over ZeroMQ and serves their operations over WebSocket, to clients that may use them.");
  addServeFlags(command).addHelpText("after", serveHelp);
  command.action(async (flags: ServeFlags) => {
    try {
      await run(flags);
    } catch (error) {
      log({ level: "error", message: (error as Error).message });
      process.exitCode = 1;
    }
  });
}

function say(event: string, fields: object = {}): void {
  process.stdout.write(`${JSON.stringify({ event, ...fields })}\n`);
}

function log({ level, message, error }: RelayLogEntry): void {
  const why = error === undefined ? {} : { error: String((error as Error | null)?.message ?? error) };
  process.stderr.write(`${JSON.stringify({ time: new Date().toISOString(), level, message, ...why })}\n`);
}

async function run(flags: ServeFlags): Promise<void> {
  const { authenticate, reload } = await authenticationOf(flags);
  const tls = tlsOf(flags);
  const audit = flags.audit === undefined ? undefined : auditFile(flags.audit);
  listen({ reload, audit });
  const { host, port, path, requireOrigin, metrics, allowAnyoneOnTheNetworkWithoutAuthentication } = flags;
  const options = {
    host,
    port,
    path,
    requireOrigin,
    metrics,
    allowAnyoneOnTheNetworkWithoutAuthentication,
    origins: flags.origin,
    hosts: flags.hostName,
    limits: flags.limit,
    log,
    ...tls,
    ...(authenticate !== undefined && { authenticate }),
    ...(audit !== undefined && { audit }),
  };
  // engines handshake once, so what can be wrong is found before they are let in
  resolveServeOptions(options);

  const { handshake, count, first, advertisedHost } = flags;
  const listener = await bind({ handshake, count, first, ...(advertisedHost !== undefined && { advertisedHost }) });
  const stop = new AbortController();
  const stopped = new Promise<void>((resolve) => stop.signal.addEventListener("abort", () => resolve()));
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(1);
      stop.abort(new Error(signal));
    });
  }
  say("bound", { handshake: listener.handshakeAddress });
  try {
    const connection = await listener.accept({ timeoutMs: flags.acceptTimeoutS * 1000, signal: stop.signal });
    const relay = await serve(connection, options);
    say("serving", { url: relay.url, engines: connection.engines.map(({ index }) => index) });
    const why = await Promise.race([stopped.then(() => "asked"), connection.closed.then(({ reason }) => reason)]);
    say("stopping", { reason: why });
    await relay.close("the relay is stopping");
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    await listener.close();
    audit?.close();
  }
  say("stopped");
}

/** SIGHUP reads tokens anew, SIGUSR2 opens the audit log anew; neither ends the process. */
function listen({ reload, audit }: { readonly reload?: (() => void) | undefined; readonly audit?: AuditFile | undefined }): void {
  const attempt = (what: string, act: (() => void) | undefined): void => {
    try {
      act?.();
      log({ level: "info", message: act === undefined ? `there is nothing to do for ${what}` : what });
    } catch (error) {
      log({ level: "error", message: `${what}: failed, all is as it was`, error });
    }
  };
  process.on("SIGHUP", () => attempt("reading tokens anew", reload));
  process.on("SIGUSR2", () => attempt("opening the audit log anew", audit && (() => audit.reopen())));
}
