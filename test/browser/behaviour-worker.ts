// A module worker that has the connections itself, and runs behaviours by name.
import { behaviours } from "../behaviours/index.ts";
import { runBehaviour } from "../behaviours/rig.ts";
import { remoteRig } from "./remote-rig.ts";

/** What it is asked to run: a behaviour over a relay of some kind. */
export interface Errand {
  readonly id: number;
  readonly server: string;
  readonly kind: string;
  readonly behaviour: string;
}

/** What came of it. */
export interface Outcome {
  readonly id: number;
  /** Name of the global scope it ran in. */
  readonly scope: string;
  readonly error?: { readonly message: string; readonly stack: string | undefined };
}

async function run({ id, server, kind, behaviour }: Errand): Promise<Outcome> {
  const scope = globalThis.constructor.name;
  try {
    const found = behaviours[behaviour];
    if (found === undefined) throw new Error(`there is no behaviour "${behaviour}"`);
    await runBehaviour(found, (count) => remoteRig(server, kind, count));
    return { id, scope };
  } catch (error) {
    const { message, stack } = error as Error;
    return { id, scope, error: { message, stack } };
  }
}

globalThis.addEventListener("message", async ({ data }: MessageEvent<Errand>) => postMessage(await run(data)));
