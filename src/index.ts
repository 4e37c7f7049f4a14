/**
 * The client for the control plane of LLM inference engines. It needs a connection: `enginewire/node` makes one.
 *
 * @packageDocumentation
 */
export {
  type Operation,
  type OperationName,
  type OperationTypes,
  operations,
  type RefusedValue,
  type SlimMethod,
} from "../generated/tokenspeed/operations.ts";
export type { ClientCapabilities } from "./client/capabilities.ts";
export { type Client, type ClientOptions, createClient, type MethodArguments, type OperationMethods } from "./client/create-client.ts";
export type { Condition } from "./client/guard/conditions.ts";
export { type EngineState, type MemoryRegion, memoryRegions, type SchedulerState } from "./client/guard/engine-state.ts";
export { type GuardRule, guardTable } from "./client/guard/table.ts";
export type { ClientCall, ClientCallOptions, Interceptor, Next } from "./client/interceptors.ts";
export type { EngineReport, GroupState, ReconcileOptions, Reconciliation, StateOptions } from "./client/recovery.ts";
export type { ControlDialect, EngineCapabilities } from "./transport/capabilities.ts";
export type {
  CallOptions,
  CloseReason,
  Connection,
  ConnectionEvent,
  EngineInfo,
  EngineReply,
  EventCounts,
  FarCallOptions,
  FarGuard,
} from "./transport/connection.ts";
export type {
  EngineLoad,
  GenerateOptions,
  GenerateRequest,
  OutputChunk,
  OutputStream,
  RoutableEngine,
  Routing,
  TokenLogprobs,
  TopLogprobs,
} from "./transport/generation.ts";
export { EngineWireError, type EngineWireErrorDetails, type ErrorCode, errorCodes, isEngineWireError } from "./wire/errors.ts";
