import { EngineWireError } from "../wire/errors.ts";
import { AbortListeners } from "./abort-listeners.ts";
import { checkRelease } from "./capabilities.ts";
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

const callOptions: Readonly<Record<keyof CallOptions, true>> = {
  signal: true,
  timeoutMs: true,
  engines: true,
  release: true,
  onReply: true,
};

/** Refuses options that do not exist, so that a misspelt `timeoutMs` is no silent default, and unusable values. Throws `invalid_argument`. */
export function checkCallOptions(options: CallOptions, further: readonly string[] = []): void {
  if (typeof options !== "object" || options === null) {
    throw new EngineWireError("invalid_argument", "the options of a call must be an object", {
      found: options === null ? "null" : typeof options,
    });
  }
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(callOptions, name) || further.includes(name)) continue;
    const known = [...Object.keys(callOptions), ...further].join(", ");
    throw new EngineWireError("invalid_argument", `a call has no option "${name}"; it has ${known}`, { path: name });
  }
  if (options.timeoutMs !== undefined) checkTimeout(options.timeoutMs);
  if (options.signal !== undefined) checkSignal(options.signal);
  if (options.release !== undefined) checkRelease(options.release);
  if (options.onReply !== undefined && typeof options.onReply !== "function")
    throw new EngineWireError("invalid_argument", "onReply must be a function", { path: "onReply", found: typeof options.onReply });
  if (options.engines === undefined || (Array.isArray(options.engines) && options.engines.length > 0)) return;
  throw new EngineWireError("invalid_argument", "engines must be a list of at least one engine index", { path: "engines" });
}

/**
 * Calls `expired` after `timeoutMs` and `aborted` when the signal aborts, whichever comes first, and returns the function
 * that takes both back. A signal that many calls may share is listened to through `aborts`, theirs in common.
 */
export function limit(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  on: { readonly expired: () => void; readonly aborted: (reason: unknown) => void },
  aborts = new AbortListeners(),
): () => void {
  const timer = setTimeout(expire, timeoutMs);
  const ignoreAbort = signal && aborts.add(signal, abort);
  function stop(): void {
    clearTimeout(timer);
    ignoreAbort?.();
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
