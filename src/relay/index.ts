/**
 * The relay: serves a connection to engines over WebSocket to browsers, command lines and other processes. Needs `ws`.
 *
 * @packageDocumentation
 */
export { type AuditEntry, type AuditFile, type AuditSink, auditFile } from "./audit.ts";
export type { RelayLogEntry } from "./context.ts";
export type { Authenticate, Credential, Identity } from "./identity.ts";
export { type JsonWebTokenOptions, jsonWebTokens } from "./json-web-tokens.ts";
export type { RelayLimits } from "./limits.ts";
export type { ServeOptions } from "./options.ts";
export { type Scope, scopes } from "./scopes.ts";
export { type Relay, serve } from "./serve.ts";
export { type StaticTokens, staticTokens, type TokenSource } from "./static-tokens.ts";
