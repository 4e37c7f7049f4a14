import {
  type EngineRelease,
  type Operation,
  type OperationName,
  type OperationTypes,
  operations,
} from "../../generated/tokenspeed/operations.ts";
import type { ControlRequestInit, ReplyOf, RequestTag } from "../messages.ts";
import { checkRelease } from "../transport/capabilities.ts";
import type { Connection, EngineReply } from "../transport/connection.ts";
import { checkCallOptions, checkTimeout } from "../transport/timeouts.ts";
import { EngineWireError } from "../wire/errors.ts";
import { type ClientCapabilities, capabilitiesOf } from "./capabilities.ts";
import { type CallGuard, guardOf } from "./guard/call-guard.ts";
import { type ClientCall, type ClientCallOptions, compose, type Interceptor } from "./interceptors.ts";
import { requireSuccess } from "./outcome.ts";
import { type GroupState, groupState, type ReconcileOptions, type Reconciliation, reconcile, type StateOptions } from "./recovery.ts";

// what a call of a client has besides the options of a connection's call
const clientOptions: readonly string[] = ["guard", "caller", "onWait"] satisfies (keyof ClientCallOptions)[];

/** What a client can be told. */
export interface ClientOptions {
  /** Default timeouts that differ from the operations' own, in milliseconds. A call's own `timeoutMs` wins. */
  readonly timeoutsMs?: { readonly [Name in OperationName]?: number };
  /** `false` sends every call whatever the guard knows; a call's own `guard` wins. Default true. */
  readonly guard?: boolean;
  /** The release that requests are written for; a call's own `release` wins. Default: each engine's own. */
  readonly release?: EngineRelease;
  /** Wrapped around every call, the first one outermost. Default none. */
  readonly interceptors?: readonly Interceptor[];
}

/** What an operation's method takes: its request without the tag, left out where every field has a default. */
export type MethodArguments<Init> =
  Record<never, never> extends Init ? [init?: Init, options?: ClientCallOptions] : [init: Init, options?: ClientCallOptions];

/** One method for each operation. */
export type OperationMethods = {
  readonly [Name in keyof OperationTypes]: (
    ...args: MethodArguments<Omit<OperationTypes[Name]["init"], "$tag">>
  ) => Promise<readonly EngineReply<OperationTypes[Name]["reply"]>[]>;
};

/** A typed client over a connection. Make one for a connection: it is what knows the engines' states. */
export interface Client extends OperationMethods, AsyncDisposable {
  /** The connection it calls through. */
  readonly connection: Connection;
  /**
   * Sends any control request and resolves with all replies, whatever they say: a reply of `success: false` is no error
   * here. The guard holds all the same.
   */
  control<Tag extends RequestTag>(
    request: ControlRequestInit & { readonly $tag: Tag },
    options?: ClientCallOptions,
  ): Promise<readonly EngineReply<ReplyOf<Tag>>[]>;
  /**
   * What is known of every engine, from the replies seen so far; with `refresh`, after asking each of them. Says where
   * they disagree. An engine that cannot be asked is reported, not thrown.
   */
  state(options?: StateOptions): Promise<GroupState>;
  /**
   * Brings every engine to a state, whatever it was left in by a timeout or a partial failure: asks it, sends what is
   * missing, asks again, and reports what was done to it. This is the only place that sends an operation by itself.
   */
  reconcile(options: ReconcileOptions): Promise<readonly Reconciliation[]>;
  /** Which operations each engine can be asked for, and which all of them can. */
  capabilities(): ClientCapabilities;
  /** Closes the connection. */
  close(reason?: string): Promise<void>;
}

/**
 * Makes a client with one method for each operation. A method resolves with the replies in engine order when every
 * engine succeeded. It throws `operation_failed`, with every reply, when one did not; `refused` for what is not legal in
 * the state of an engine, or would wedge one; and what `Connection.call` throws.
 */
export function createClient(connection: Connection, options: ClientOptions = {}): Client {
  return createGuardedClient(connection, guardOf(connection), options);
}

/** The same with a guard that others look at too. */
export function createGuardedClient(connection: Connection, guard: CallGuard, options: ClientOptions = {}): Client {
  for (const timeoutMs of Object.values(options.timeoutsMs ?? {})) checkTimeout(timeoutMs);
  if (options.release !== undefined) checkRelease(options.release);
  const byRequest = new Map<string, Operation>();
  const methods: Record<string, unknown> = {};

  /** The innermost step: checks a call and hands it to the connection. */
  async function send(call: ClientCall): Promise<readonly EngineReply[]> {
    checkCallOptions(call.options, clientOptions);
    const { timeoutMs = defaultTimeout(call.operation), guard: guarded = options.guard ?? true } = call.options;
    const release = call.options.release ?? options.release;
    const told = release === call.options.release ? call : { ...call, options: { ...call.options, release } };
    return guard.call(told, timeoutMs, guarded);
  }

  function defaultTimeout(operation: Operation): number {
    return options.timeoutsMs?.[operation.name as OperationName] ?? operation.timeoutMs;
  }

  const pass = compose(options.interceptors ?? [], send);
  const judge = compose(options.interceptors ?? [], async (call) => requireSuccess(call.operation, await send(call)));

  for (const operation of Object.values<Operation>(operations)) {
    byRequest.set(operation.request, operation);
    methods[operation.name] = async (init: unknown = {}, callOptions: ClientCallOptions = {}) =>
      judge({ operation, request: requestOf(operation, init), options: callOptions });
  }

  const client = {
    connection,
    async control(request: ControlRequestInit, callOptions: ClientCallOptions = {}) {
      const operation = byRequest.get((request as { $tag?: string } | null | undefined)?.$tag ?? "");
      if (operation === undefined)
        throw new EngineWireError("unknown_tag", "the request's $tag names no control operation", { path: "$tag" });
      return pass({ operation, request, options: callOptions });
    },
    capabilities: () => capabilitiesOf(connection),
    state: (stateOptions: StateOptions = {}) => groupState(client, guard, stateOptions),
    reconcile: (reconcileOptions: ReconcileOptions) => reconcile(client, guard, reconcileOptions),
    close: (reason?: string) => connection.close(reason),
    [Symbol.asyncDispose]: () => connection.close(),
    ...methods,
    // the methods are made from the same table that `OperationMethods` is a view of
  } as unknown as Client;
  return client;
}

function requestOf(operation: Operation, init: unknown): ControlRequestInit {
  if (typeof init !== "object" || init === null || Array.isArray(init)) {
    const found = init === null ? "null" : Array.isArray(init) ? "array" : typeof init;
    throw new EngineWireError("invalid_value", `${operation.name} takes an object of the request's fields, got ${found}`, {
      operation: operation.name,
      path: operation.request,
      expected: "object",
      found,
    });
  }
  const tag = (init as { $tag?: unknown }).$tag;
  if (tag !== undefined && tag !== operation.request) {
    throw new EngineWireError("invalid_value", `${operation.name} sends a ${operation.request}, got $tag ${String(tag)}`, {
      operation: operation.name,
      path: `${operation.request}.$tag`,
      expected: operation.request,
      found: String(tag),
    });
  }
  return { ...init, $tag: operation.request } as ControlRequestInit;
}
