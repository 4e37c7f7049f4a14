/**
 * Every code an `EngineWireError` can carry, described in `docs/errors.md`. The first group comes from encoding and
 * decoding, the second from reaching engines, the third from calls, the fourth from generation, the fifth from relays.
 */
export const errorCodes = [
  "invalid_value",
  "unsafe_integer",
  "unknown_field",
  "missing_field",
  "nesting_too_deep",
  "malformed",
  "unknown_tag",

  "invalid_argument",
  "transport_unavailable",
  "address_unavailable",
  "handshake_failed",
  "handshake_timeout",

  "unsupported",
  "refused",
  "operation_failed",
  "timeout",
  "previous_call_pending",
  "aborted",
  "engine_dead",
  "closed",

  "duplicate_request_id",
  "slow_consumer",

  "unreachable",
  "unauthenticated",
  "forbidden",
  "version_mismatch",
  "limit_exceeded",
  "going_away",
  "outcome_unknown",
] as const;

/** What went wrong, as a stable string. */
export type ErrorCode = (typeof errorCodes)[number];

/** What an error says besides its code and message. */
export interface EngineWireErrorDetails {
  /** What caused it, where something else did. */
  readonly cause?: unknown;
  /** The operation's method name. */
  readonly operation?: string;
  /** The engine's index on the wire. */
  readonly engine?: number;
  /** The stage that failed: of a handshake, or of a call (`queue`, `send`, `reply`). */
  readonly stage?: string;
  /** The struct and field at fault, such as `UpdateWeightsFromDistributedReqInput.shapes[3][0]`. */
  readonly path?: string;
  /** Byte offset in the decoded message. */
  readonly offset?: number;
  /** What was expected there. */
  readonly expected?: string;
  /** What was found there: the value's kind, never the whole value. */
  readonly found?: string;
  /** The replies that did come, in engine order. */
  readonly replies?: readonly unknown[];
  /** Engines that had not answered. */
  readonly missing?: readonly number[];
}

const brand = Symbol.for("enginewire.EngineWireError");

/**
 * The one error this library throws. `code` says what went wrong, the message begins with it, and the details that
 * apply are properties. Recognise it with `isEngineWireError`, which also works across copies of the package.
 */
export class EngineWireError extends Error {
  override readonly name = "EngineWireError";
  readonly code: ErrorCode;
  declare readonly operation?: string;
  declare readonly engine?: number;
  declare readonly stage?: string;
  declare readonly path?: string;
  declare readonly offset?: number;
  declare readonly expected?: string;
  declare readonly found?: string;
  declare readonly replies?: readonly unknown[];
  declare readonly missing?: readonly number[];

  constructor(code: ErrorCode, message: string, details: EngineWireErrorDetails = {}) {
    const { cause, ...rest } = details;
    super(`${code}: ${message}`, cause === undefined ? undefined : { cause });
    this.code = code;
    Object.assign(this, rest);
    Object.defineProperty(this, brand, { value: true });
  }
}

/** Whether a value is an `EngineWireError`, from this copy of the package or another. */
export function isEngineWireError(value: unknown): value is EngineWireError {
  return typeof value === "object" && value !== null && (value as { [brand]?: unknown })[brand] === true;
}

/** Anything that was thrown as the one error: what is none yet is `malformed`, with its cause. */
export function asEngineWireError(error: unknown): EngineWireError {
  if (isEngineWireError(error)) return error;
  return new EngineWireError("malformed", String((error as Error | null)?.message ?? error), { cause: error });
}
