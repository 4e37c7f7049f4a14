import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Collects what nobody holds any more, as the platform would some day. */
export function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}
