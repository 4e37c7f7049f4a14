import { EngineWireError } from "../wire/errors.ts";

/** The parts of zeromq.js in use. */
export type ZeroMQ = Pick<typeof import("zeromq"), "Router" | "Pull" | "Dealer" | "Push">;

/**
 * Loads zeromq.js on first use: it is an optional peer with a native addon, and whoever only needs types or codecs must
 * not pay for it. Throws `transport_unavailable`.
 */
export async function loadZeroMQ(): Promise<ZeroMQ> {
  try {
    return await import("zeromq");
  } catch (cause) {
    const missing = (cause as { code?: unknown }).code === "ERR_MODULE_NOT_FOUND";
    const platform = `${process.platform}-${process.arch}, Node ${process.versions.node}`;
    const remedy = missing
      ? "it is not installed: run `npm install zeromq@6`"
      : "its native addon does not load here; zeromq.js needs a prebuilt addon for this platform (glibc 2.25 or newer on Linux) or a source build";
    throw new EngineWireError("transport_unavailable", `zeromq.js could not be loaded (${platform}): ${remedy}`, { cause });
  }
}

/** The system error code of a failure in zeromq.js, such as `EHOSTUNREACH`. */
export function socketErrorCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : undefined;
}
