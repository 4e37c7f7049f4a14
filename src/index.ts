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
} from "../generated/tokenspeed/operations.ts";
export { type Client, type ClientOptions, createClient, type MethodArguments, type OperationMethods } from "./client/create-client.ts";
export type {
  CallOptions,
  CloseReason,
  Connection,
  ConnectionEvent,
  EngineInfo,
  EngineReply,
  EventCounts,
} from "./transport/connection.ts";
export { EngineWireError, type EngineWireErrorDetails, type ErrorCode, errorCodes, isEngineWireError } from "./wire/errors.ts";
