import type { Attacker } from "./attacker.ts";
import { callAttacks } from "./attacks-calls.ts";
import { connectionAttacks } from "./attacks-connections.ts";
import { messageAttacks } from "./attacks-messages.ts";

/** What an attacker does. */
export interface Attack {
  readonly name: string;
  /** How much of it in a second, and from how many connections. */
  readonly rate: string;
  /** How many times as long as others it takes to be tried as often as it should. Default 1. */
  readonly longer?: number;
  /** Goes on until the attacker is no longer active. */
  readonly run: (attacker: Attacker) => Promise<void>;
}

/** All of them, in the order of the table. */
export const attacks: readonly Attack[] = [...connectionAttacks, ...messageAttacks, ...callAttacks];
