import { EngineWireError } from "../wire/errors.ts";
import type { CallOptions } from "./connection.ts";

// what the platform's timers hold; a longer delay would fire at once
const longest = 2_147_483_647;

/** Refuses a time limit that a timer would misunderstand, 0 included. Throws `invalid_argument`. */
export function checkTimeout(timeoutMs: number): number {
  if (typeof timeoutMs === "number" && timeoutMs >= 1 && timeoutMs <= longest) return timeoutMs;
  const found = typeof timeoutMs === "number" ? String(timeoutMs) : typeof timeoutMs;
  throw new EngineWireError(
    "invalid_argument",
    `timeoutMs must be a number of milliseconds from 1 to ${longest}, got ${found}; leave it out for the default`,
    { path: "timeoutMs", expected: `1 to ${longest}`, found },
  );
}

/** Refuses anything that is not an AbortSignal. Throws `invalid_argument`. */
export function checkSignal(signal: AbortSignal): AbortSignal {
  if (typeof signal === "object" && signal !== null && typeof signal.addEventListener === "function" && "aborted" in signal) return signal;
  throw new EngineWireError("invalid_argument", "signal must be an AbortSignal", {
    path: "signal",
    expected: "AbortSignal",
    found: typeof signal,
  });
}

const callOptions: Readonly<Record<keyof CallOptions, true>> = { signal: true, timeoutMs: true, engines: true };

/** Refuses options that do not exist, so that a misspelt `timeoutMs` is no silent default, and unusable values. Throws `invalid_argument`. */
export function checkCallOptions(options: CallOptions): void {
  if (typeof options !== "object" || options === null) {
    throw new EngineWireError("invalid_argument", "the options of a call must be an object", {
      found: options === null ? "null" : typeof options,
    });
  }
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(callOptions, name)) continue;
    const known = Object.keys(callOptions).join(", ");
    throw new EngineWireError("invalid_argument", `a call has no option "${name}"; it has ${known}`, { path: name });
  }
  if (options.timeoutMs !== undefined) checkTimeout(options.timeoutMs);
  if (options.signal !== undefined) checkSignal(options.signal);
}

/**
 * Calls `expired` after `timeoutMs` and `aborted` when the signal aborts, whichever comes first, and returns the function
 * that takes both back. A signal shared by many calls keeps no listener of a finished one.
 */
export function limit(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  on: { readonly expired: () => void; readonly aborted: (reason: unknown) => void },
): () => void {
  const timer = setTimeout(expire, timeoutMs);
  signal?.addEventListener("abort", abort);
  function stop(): void {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
  function expire(): void {
    stop();
    on.expired();
  }
  function abort(): void {
    stop();
    on.aborted(signal?.reason);
  }
  return stop;
}
