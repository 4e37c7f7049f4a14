import { existsSync } from "node:fs";
import { join } from "node:path";

const folder = process.env.ENGINEWIRE_PEERS;

/** The path of a peer's binary, or `undefined` where it was not built; says so, since what needs it is then skipped. */
export function peerBinary(name: string): string | undefined {
  const path = folder === undefined ? undefined : join(folder, name);
  if (path !== undefined && existsSync(path)) return path;
  console.warn(
    `skipped: what needs the peer ${name}, for ${folder === undefined ? "ENGINEWIRE_PEERS is not set" : `it is not in ${folder}`}`,
  );
  return undefined;
}
