import { encodeWaiting } from "../../generated/relay/encoders.ts";
import type { Call } from "../../generated/relay/types.ts";
import { type EngineRelease, type Operation, operations } from "../../generated/tokenspeed/operations.ts";
import type { ControlRequest } from "../../generated/tokenspeed/types.ts";
import type { ClientCallOptions } from "../client/interceptors.ts";
import { decodeControlRequest } from "../messages.ts";
import type { EngineReply } from "../transport/connection.ts";
import { toFailure } from "../transport/relay/failure.ts";
import { checkTimeout } from "../transport/timeouts.ts";
import { EngineWireError, isEngineWireError } from "../wire/errors.ts";
import { networkOf } from "./addresses.ts";
import { auditReplies, elide, entryOf } from "./audit.ts";
import type { CallHandle } from "./call-handle.ts";
import type { RelayContext } from "./context.ts";
import type { Identity } from "./identity.ts";
import { checkLengths } from "./lengths.ts";
import type { NoTurn } from "./lines.ts";
import { Replies } from "./replies.ts";
import { requireScopes, scopesFor } from "./scopes.ts";

/** Who calls. */
export interface Caller {
  /** The session's name. */
  readonly session: string;
  readonly identity: Identity;
  /** How those are told about it whose calls wait behind its own. */
  readonly label: string;
  /** What the client calls itself. */
  readonly client: string;
  readonly address: string;
  readonly origin: string | undefined;
  /** Hands a message over; nothing happens where the client has left. */
  readonly send: (message: Uint8Array) => void;
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
  const told = new Replies(id, message.engines?.length ?? caller.identity.engines?.length ?? context.engines, caller.send);
  let operation: Operation | undefined;
  let request: ControlRequest | undefined;
  let replies: readonly EngineReply[] = [];
  let failure: unknown;
  let leave: (() => void) | undefined;
  try {
    request = decodeControlRequest(message.request);
    operation = operationOf(request);
    requireScopes(operation.name, scopesFor(operation, guarded), caller.identity.scopes);
    checkLengths(request, context.limits.listLength);
    if (operation.effect !== "read" && !context.audited())
      throw new EngineWireError("refused", `${operation.name} was not sent: the relay's audit log cannot be written`, {
        operation: operation.name,
        stage: "queue",
      });
    const options = optionsOf(message, operation, caller.identity);
    const timeoutMs = checkTimeout(options.timeoutMs ?? operation.timeoutMs);
    const entered = enter(context, caller, operation, options, timeoutMs, handle.signal);
    // most have their turn at once, and need not wait for it
    leave = entered instanceof Promise ? await entered : entered;
    // from here on: what no engine has seen yet is given up with its client, or clients that come and go would pile calls up
    handle.outlives = operation.effect !== "read";
    const pending = context.client.control(request, {
      ...options,
      timeoutMs: Math.max(1, timeoutMs - (performance.now() - start)),
      signal: handle.signal,
      caller: caller.label,
      onWait: (holder) => caller.send(encodeWaiting({ id, holder })),
      onReply: (reply) => told.add(reply),
    });
    // what is out by now may be a pause that others should see
    context.stirred();
    replies = await pending;
    failure = told.failure;
  } catch (error) {
    failure = error;
    if (isEngineWireError(error)) replies = (error.replies ?? []) as readonly EngineReply[];
    else context.log({ level: "error", message: `a call of session ${caller.session} failed`, error });
  }
  leave?.();
  const durationMs = performance.now() - start;
  const refusing = replies.some(({ reply }) => "success" in reply && reply.success === false);
  const outcome = failure !== undefined ? toFailure(failure).code : refusing ? "operation_failed" : "ok";
  const denied = outcome === "forbidden";
  if (operation !== undefined && request !== undefined && (denied || operation.effect !== "read")) {
    context.audit?.({
      ...entryOf(denied ? "denied" : "call", caller),
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
  if (handle.outlives) context.tellChanges();
  else context.stirred();
  told.complete(failure === undefined ? null : toFailure(failure));
}

/** The client's turn among all, at once or when it has come: the function that ends it. */
function enter(
  { lines, authenticate }: RelayContext,
  { identity, address }: Caller,
  { name, reply }: Operation,
  { engines }: ClientCallOptions,
  timeoutMs: number,
  signal: AbortSignal,
): (() => void) | Promise<() => void> {
  // whoever may come without a credential is told apart by where it comes from
  const client = authenticate === undefined ? networkOf(address) : identity.name;
  // one engine that does not answer keeps calls for others no longer
  const line = engines?.length === 1 ? engines[0] : "all";
  const entered = lines.enter(`${reply} ${line} ${client}`, timeoutMs, signal);
  if (!(entered instanceof Promise)) return entered;
  return entered.catch(({ expired, reason: cause }: NoTurn) => {
    const details = { operation: name, stage: "queue" };
    if (expired)
      throw new EngineWireError("timeout", `${name} was not sent within ${timeoutMs} ms: calls of the same client are before it`, details);
    throw new EngineWireError("aborted", `${name} was aborted before anything was sent`, { ...details, cause });
  });
}

function operationOf({ $tag }: ControlRequest): Operation {
  const operation = byRequest.get($tag);
  if (operation === undefined) throw new EngineWireError("unknown_tag", "the request's tag names no control operation", { path: "$tag" });
  return operation;
}

/** The options of a call as its message has them; all the engines that the credential allows, where it names none. */
function optionsOf({ engines, timeoutMs, guard, release }: Call, operation: Operation, identity: Identity): ClientCallOptions {
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
    timeoutMs: timeoutMs ?? undefined,
    // the client checks it
    release: (release as EngineRelease | null) ?? undefined,
  };
}
