import { EngineWireError } from "../wire/errors.ts";

/** How long a server may take to show that it is there, in milliseconds. */
const timeoutMs = 3000;

/**
 * Why a first connection failed. A WebSocket does not say whether nothing answers or whether a server refuses it, so a plain
 * request asks whether one is there at all.
 */
export async function explain(url: string, error: EngineWireError): Promise<EngineWireError> {
  if (error.stage !== "connect" || typeof fetch !== "function") return error;
  try {
    await fetch(url.replace(/^ws/, "http"), { mode: "no-cors", signal: AbortSignal.timeout(timeoutMs) });
  } catch {
    return error;
  }
  const text =
    "a server answers at the address and refuses this client: its Origin or Host is not allowed, the path is wrong, or it is full";
  return new EngineWireError("forbidden", text, { stage: "connect", cause: error });
}
