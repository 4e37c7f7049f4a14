import { type Operation, type OperationName, type OperationTypes, operations } from "../../generated/tokenspeed/operations.ts";
import type { ControlRequestInit, ReplyOf, RequestTag } from "../messages.ts";
import type { CallOptions, Connection, EngineReply } from "../transport/connection.ts";
import { checkTimeout } from "../transport/timeouts.ts";
import { EngineWireError } from "../wire/errors.ts";
import { requireSuccess } from "./outcome.ts";
import { refuseValues } from "./refused-values.ts";

/** What a client can be told. */
export interface ClientOptions {
  /** Default timeouts that differ from the operations' own, in milliseconds. A call's own `timeoutMs` wins. */
  readonly timeoutsMs?: { readonly [Name in OperationName]?: number };
}

/** What an operation's method takes: its request without the tag, left out where every field has a default. */
export type MethodArguments<Init> =
  Record<never, never> extends Init ? [init?: Init, options?: CallOptions] : [init: Init, options?: CallOptions];

/** One method for each operation. */
export type OperationMethods = {
  readonly [Name in keyof OperationTypes]: (
    ...args: MethodArguments<Omit<OperationTypes[Name]["init"], "$tag">>
  ) => Promise<readonly EngineReply<OperationTypes[Name]["reply"]>[]>;
};

/** A typed client over a connection. */
export interface Client extends OperationMethods, AsyncDisposable {
  /** The connection it calls through. */
  readonly connection: Connection;
  /**
   * Sends any control request and resolves with all replies, whatever they say: a reply of `success: false` is no error
   * here. Values that would wedge an engine are refused all the same.
   */
  control<Tag extends RequestTag>(
    request: ControlRequestInit & { readonly $tag: Tag },
    options?: CallOptions,
  ): Promise<readonly EngineReply<ReplyOf<Tag>>[]>;
  /** Closes the connection. */
  close(reason?: string): Promise<void>;
}

/**
 * Makes a client with one method for each operation. A method resolves with the replies in engine order when every
 * engine succeeded. It throws `operation_failed`, with every reply, when one did not; `refused` for values that would
 * wedge an engine; and what `Connection.call` throws.
 */
export function createClient(connection: Connection, options: ClientOptions = {}): Client {
  for (const timeoutMs of Object.values(options.timeoutsMs ?? {})) checkTimeout(timeoutMs);
  const byRequest = new Map<string, Operation>();
  const methods: Record<string, unknown> = {};

  async function send(operation: Operation, request: ControlRequestInit, callOptions: CallOptions): Promise<readonly EngineReply[]> {
    refuseValues(operation, request);
    const timeoutMs = options.timeoutsMs?.[operation.name as OperationName];
    return connection.call(request, timeoutMs === undefined ? callOptions : { timeoutMs, ...callOptions });
  }

  for (const operation of Object.values<Operation>(operations)) {
    byRequest.set(operation.request, operation);
    methods[operation.name] = async (init: unknown = {}, callOptions: CallOptions = {}) => {
      const replies = await send(operation, requestOf(operation, init), callOptions);
      return requireSuccess(operation, replies);
    };
  }

  const client = {
    connection,
    async control(request: ControlRequestInit, callOptions: CallOptions = {}) {
      const operation = byRequest.get((request as { $tag?: string } | null | undefined)?.$tag ?? "");
      if (operation === undefined)
        throw new EngineWireError("unknown_tag", "the request's $tag names no control operation", { path: "$tag" });
      return send(operation, request, callOptions);
    },
    close: (reason?: string) => connection.close(reason),
    [Symbol.asyncDispose]: () => connection.close(),
    ...methods,
  };
  // the methods are made from the same table that `OperationMethods` is a view of
  return client as unknown as Client;
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
