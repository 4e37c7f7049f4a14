import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** This package's release, from its nearest package file, compiled or not; `unknown` where a bundler has left none. */
export function packageRelease(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { name?: string; version?: string };
      if (name === "enginewire" && version !== undefined) return version;
    } catch {
      // not there, or not ours: further up
    }
  }
  return "unknown";
}
