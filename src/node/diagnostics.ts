import { tracingChannel } from "node:diagnostics_channel";
import type { ClientCall, Interceptor } from "../client/interceptors.ts";

/** What subscribers of the channel `enginewire:call` get. */
export interface DiagnosticsMessage {
  /** The operation's method name. */
  readonly operation: string;
  /** The engines addressed, or `undefined` for all. */
  readonly engines: readonly number[] | undefined;
  /** Set before `asyncEnd`: the replies, in engine order. */
  result?: unknown;
  /** Set before `error`: what the call failed with. */
  error?: unknown;
}

/**
 * Publishes every call on Node's tracing channel `enginewire:call` (`start`, `end`, `asyncStart`, `asyncEnd`, `error`), for
 * monitoring that must not depend on this package. Costs nothing while nobody subscribes.
 */
export function publishDiagnostics(): Interceptor {
  const channel = tracingChannel<DiagnosticsMessage>("enginewire:call");
  return (next) => (call) => (subscribed(channel) ? channel.tracePromise(() => next(call), messageOf(call)) : next(call));
}

// `tracingChannel().hasSubscribers` only exists from Node 22 on
function subscribed(channel: ReturnType<typeof tracingChannel>): boolean {
  return [channel.start, channel.end, channel.asyncStart, channel.asyncEnd, channel.error].some(({ hasSubscribers }) => hasSubscribers);
}

function messageOf({ operation, options }: ClientCall): DiagnosticsMessage {
  return { operation: operation.name, engines: options.engines };
}
