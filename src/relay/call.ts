import { encodeCompleted, encodeReply, encodeWaiting } from "../../generated/relay/encoders.ts";
import type { Call } from "../../generated/relay/types.ts";
import { type EngineRelease, type Operation, operations } from "../../generated/tokenspeed/operations.ts";
import type { ControlRequest } from "../../generated/tokenspeed/types.ts";
import type { ClientCallOptions } from "../client/interceptors.ts";
import { decodeControlRequest, encodeControlOutput, peekTag } from "../messages.ts";
import type { EngineReply } from "../transport/connection.ts";
import { toFailure } from "../transport/relay/failure.ts";
import { EngineWireError, isEngineWireError } from "../wire/errors.ts";
import { auditReplies, elide } from "./audit.ts";
import type { RelayContext } from "./context.ts";
import type { Identity } from "./identity.ts";
import { checkLengths } from "./lengths.ts";
import { requireScopes, scopesFor } from "./scopes.ts";

/** Who calls. */
export interface Caller {
  /** The session's name. */
  readonly session: string;
  readonly identity: Identity;
  /** What the client calls itself. */
  readonly client: string;
  readonly address: string;
  readonly origin: string | undefined;
  /** Hands a message over; nothing happens where the client has left. */
  readonly send: (message: Uint8Array) => void;
}

/**
 * A call under way. It is its own signal, with the few members that are looked at: an `AbortController` for each call would
 * cost more than decoding it.
 */
export class CallHandle {
  /** Whether it goes on without its client: what changes an engine is seen through and audited. */
  outlives = false;
  aborted = false;
  reason: unknown;
  /** When it arrived, in milliseconds of `performance.now()`. */
  readonly arrivedAt = performance.now();
  #listener: (() => void) | undefined;

  /** What the call is told to listen to. */
  get signal(): AbortSignal {
    return this as unknown as AbortSignal;
  }

  /** Gives the call up. */
  abort(reason: EngineWireError): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.#listener?.();
  }

  addEventListener(_: "abort", listener: () => void): void {
    this.#listener = listener;
  }

  removeEventListener(): void {
    this.#listener = undefined;
  }
}

const byRequest: ReadonlyMap<string, Operation> = /* @__PURE__ */ new Map(
  Object.values<Operation>(operations).map((operation) => [operation.request, operation]),
);

/**
 * Carries one call out: decodes it, checks what the credential allows, and has the client encode and send it anew. The
 * bytes of a client never reach an engine. Never rejects; it completes also for a client that has left.
 */
export async function carryOut(context: RelayContext, caller: Caller, message: Call, handle: CallHandle): Promise<void> {
  const start = handle.arrivedAt;
  const { id, guard: guarded } = message;
  let operation: Operation | undefined;
  let request: ControlRequest | undefined;
  let replies: readonly EngineReply[] = [];
  let failure: unknown;
  try {
    request = decodeControlRequest(message.request);
    operation = operationOf(request);
    handle.outlives = operation.effect !== "read";
    requireScopes(operation.name, scopesFor(operation, guarded), caller.identity.scopes);
    checkLengths(request, context.limits.listLength);
    if (operation.effect !== "read" && !context.audited())
      throw new EngineWireError("refused", `${operation.name} was not sent: the relay's audit log cannot be written`, {
        operation: operation.name,
        stage: "queue",
      });
    const pending = context.client.control(request, {
      ...optionsOf(message, operation, caller.identity, performance.now() - start),
      signal: handle.signal,
      caller: `${caller.identity.name} (session ${caller.session})`,
      onWait: (holder) => caller.send(encodeWaiting({ id, holder })),
      onReply: ({ engine, reply, durationMs }) => caller.send(encodeReply({ id, engine, reply: encodeControlOutput(reply), durationMs })),
    });
    // what is out by now may be a pause that others should see
    context.stirred();
    replies = await pending;
  } catch (error) {
    failure = error;
    if (isEngineWireError(error)) replies = (error.replies ?? []) as readonly EngineReply[];
    else context.log({ level: "error", message: `a call of session ${caller.session} failed`, error });
  }
  const durationMs = performance.now() - start;
  const refusing = replies.some(({ reply }) => "success" in reply && reply.success === false);
  const outcome = failure !== undefined ? toFailure(failure).code : refusing ? "operation_failed" : "ok";
  const denied = outcome === "forbidden";
  if (operation !== undefined && request !== undefined && (denied || operation.effect !== "read")) {
    context.audit({
      time: new Date().toISOString(),
      type: denied ? "denied" : "call",
      session: caller.session,
      who: caller.identity.name,
      client: caller.client,
      address: caller.address,
      ...(caller.origin !== undefined && { origin: caller.origin }),
      operation: operation.name,
      request: elide(request),
      ...(message.engines !== null && { engines: message.engines }),
      ...(!guarded && { unguarded: true }),
      outcome,
      ...(failure !== undefined && { message: elide(toFailure(failure).message) as string }),
      replies: auditReplies(replies),
      durationMs: Math.round(durationMs),
    });
  }
  context.counter.call(operation?.name ?? "", outcome, durationMs);
  // who has changed an engine sees it changed when the call has ended
  if (handle.outlives) await context.tellChanges();
  else context.stirred();
  caller.send(encodeCompleted({ id, failure: failure === undefined ? null : toFailure(failure) }));
}

/**
 * What queries are told apart by where a client has many; undefined for what changes an engine, whose order matters, and for
 * what is no request.
 */
export function kindOf({ request, engines }: Call): string | undefined {
  const tag = peekTag(request);
  if (tag === undefined || byRequest.get(tag)?.effect !== "read") return undefined;
  return engines === null ? tag : `${tag} ${engines.join(" ")}`;
}

function operationOf({ $tag }: ControlRequest): Operation {
  const operation = byRequest.get($tag);
  if (operation === undefined) throw new EngineWireError("unknown_tag", "the request's tag names no control operation", { path: "$tag" });
  return operation;
}

/** The options of a call as its message has them; all the engines that the credential allows, where it names none. */
function optionsOf(
  { engines, timeoutMs, guard, release }: Call,
  operation: Operation,
  identity: Identity,
  waitedMs: number,
): ClientCallOptions {
  const allowed = identity.engines;
  const foreign = allowed && engines?.find((engine) => !allowed.includes(engine));
  if (foreign !== undefined)
    throw new EngineWireError("forbidden", `${operation.name} was not sent: the credential does not allow engine ${foreign}`, {
      operation: operation.name,
      stage: "queue",
      engine: foreign,
      found: `engine ${foreign}`,
    });
  return {
    guard,
    engines: engines ?? allowed,
    // a time that no timer takes is left for the client to refuse
    timeoutMs: timeoutMs === null || timeoutMs < 1 ? (timeoutMs ?? undefined) : Math.max(1, timeoutMs - waitedMs),
    // the client checks it
    release: (release as EngineRelease | null) ?? undefined,
  };
}
