import type { Client } from "../client/create-client.ts";
import type { AbortListeners } from "../transport/abort-listeners.ts";
import type { AuditEntry } from "./audit.ts";
import type { Identity } from "./identity.ts";
import type { RelayLimits } from "./limits.ts";
import type { Lines } from "./lines.ts";
import type { Rates } from "./rate.ts";
import type { Refusals } from "./refusals.ts";

/** Something that the relay's own log should have. Never holds a credential. */
export interface RelayLogEntry {
  readonly level: "info" | "warn" | "error";
  /** A sentence. */
  readonly message: string;
  /** What went wrong. */
  readonly error?: unknown;
}

/** What happens in a relay, for whoever counts it. */
export interface RelayCounter {
  /** A call has ended. */
  call(operation: string, outcome: string, durationMs: number): void;
  /** A client was let in (`in`), has left (`out`), or was kept out. */
  client(what: "in" | "out" | "refused"): void;
}

/** What the parts of one relay share. */
export interface RelayContext {
  /** The one client of the engines: its guard is in common for all. */
  readonly client: Client;
  /** How many engines there are. */
  readonly engines: number;
  readonly limits: RelayLimits;
  /** Where calls of different clients meet. */
  readonly lines: Lines;
  /** Which refused clients are written down. */
  readonly refusals: Refusals;
  /** Listens for credentials that are withdrawn: many sessions may have one. */
  readonly withdrawals: AbortListeners;
  /** This package's release. */
  readonly release: string;
  readonly authenticate: ((credential: { token?: string; address: string; origin?: string }) => Promise<Identity | undefined>) | undefined;
  /** Calls of each credential from each address. */
  readonly rates: Rates;
  readonly counter: RelayCounter;
  readonly log: (entry: RelayLogEntry) => void;
  /** Whether state-changing calls may be made: the audit log takes entries. */
  readonly audited: () => boolean;
  /** Writes an entry down; absent where nothing is. */
  readonly audit: ((entry: AuditEntry) => void) | undefined;
  /** Something may have changed what the guard knows: it is told soon. */
  readonly stirred: () => void;
  /** Tells what has changed at once. */
  readonly tellChanges: () => void;
}
