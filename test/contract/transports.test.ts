// What every kind of connection does, whatever carries it: one suite of behaviours (test/behaviours), run over each kind
// that Node has. test/browser/contract.test.ts runs it in a page and in a worker.
import { describe, it } from "vitest";
import { behaviours } from "../behaviours/index.ts";
import { runBehaviour } from "../behaviours/rig.ts";
import { transports } from "./transports.ts";

describe.each(Object.entries(transports))("over %s", (_, open) => {
  it.each(Object.entries(behaviours))("%s", (_, behaviour) => runBehaviour(behaviour, open));
});
