// The attacker: does what it is told until it is told to stop, from an address of its own, and counts what it was answered.
import { Attacker } from "./attacker.ts";
import { attacks } from "./attacks.ts";
import type { AttackerOrder, AttackerReport } from "./messages.ts";

let attacker: Attacker | undefined;

process.on("message", async (order: AttackerOrder) => {
  if ("start" in order) {
    const attack = attacks.find(({ name }) => name === order.start);
    if (attack === undefined) throw new Error(`there is no attack ${order.start}`);
    attacker = new Attacker(order.url, order.once, () => process.send?.({ begun: true }));
    await attack.run(attacker);
  } else if (attacker !== undefined) {
    await attacker.stop();
    process.send?.({ tried: attacker.tried, refused: Object.fromEntries(attacker.refused) } satisfies AttackerReport);
  }
});
process.on("disconnect", () => process.exit(0));
process.send?.({ ready: true });
