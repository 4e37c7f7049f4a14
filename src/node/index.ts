/**
 * The ZeroMQ frontend for Node: binds the sockets that TokenSpeed engines dial in to.
 *
 * @packageDocumentation
 */
export type { AcceptOptions, BindOptions } from "./bind-options.ts";
export { type DiagnosticsMessage, publishDiagnostics } from "./diagnostics.ts";
export { bind, connect, type Listener } from "./listener.ts";
