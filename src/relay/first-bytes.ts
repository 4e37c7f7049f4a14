import type { Duplex } from "node:stream";

/**
 * Calls `tooMany`, once, when more than `most` bytes have come; the result ends the counting. Whoever has shown no credential
 * yet must not have the relay keep a message of the length that others may send, nor count as many pieces of one.
 */
export function limitFirstBytes(stream: Duplex, most: number, tooMany: () => void): () => void {
  let left = most;
  const count = (bytes: Uint8Array): void => {
    left -= bytes.length;
    if (left >= 0) return;
    stop();
    tooMany();
  };
  const stop = (): void => void stream.off("data", count);
  stream.on("data", count);
  return stop;
}
