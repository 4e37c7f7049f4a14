import type { Operation } from "../../generated/tokenspeed/operations.ts";
import type { ControlRequestInit } from "../messages.ts";
import type { CallOptions, EngineReply } from "../transport/connection.ts";

/** A call on its way to the engines. */
export interface ClientCall {
  /** What the schema says about the operation. */
  readonly operation: Operation;
  /** The request, with its tag. */
  readonly request: ControlRequestInit;
  /** Signal, timeout and engines. */
  readonly options: ClientCallOptions;
}

/** What a call of a client may say besides its request. */
export interface ClientCallOptions extends CallOptions {
  /**
   * `false` sends the call whatever the guard knows of the engines' states and thinks of its values, and beside other
   * state-changing calls. The codec and the lanes still hold. Default: the client's own `guard`.
   */
  readonly guard?: boolean | undefined;
  /** Who calls, for those whose calls wait behind this one. Default: nobody is named. */
  readonly caller?: string | undefined;
  /** Hears that the call waits for another one that is under way; `holder` says which, and whose. */
  readonly onWait?: ((holder: string) => void) | undefined;
}

/** Sends a call and resolves with its replies. */
export type Next = (call: ClientCall) => Promise<readonly EngineReply[]>;

/**
 * Wraps every call of a client: it may look at the call, change it, answer it, or look at what becomes of it. The first
 * interceptor is the outermost.
 *
 * @example
 * const log: Interceptor = (next) => async (call) => {
 *   try {
 *     return await next(call);
 *   } finally {
 *     logger.info(call.operation.name);
 *   }
 * };
 */
export type Interceptor = (next: Next) => Next;

/** Makes one function of interceptors and what they wrap. */
export function compose(interceptors: readonly Interceptor[], innermost: Next): Next {
  return interceptors.reduceRight((next, interceptor) => interceptor(next), innermost);
}
