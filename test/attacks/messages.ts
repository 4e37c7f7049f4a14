/** What the processes of a run say to each other, and know in common. */

/** Engines: two for the client's calls, one for its stream, and one for the attacker's streams. */
export const engineCount = 4;
export const clientsStream = 2;
export const attackersStreams = 3;

/** Tokens of the relay's file. */
export const tokens = {
  client: "the-client-that-behaves-well",
  attacker: "an-attacker-who-has-a-token",
  reader: "somebody-who-may-only-read",
  expired: "a-token-that-has-expired-long-ago",
} as const;

/** How the relay is. */
export interface RelayReport {
  readonly clients: number;
  /** Requests that run on engines. */
  readonly inFlight: number;
  readonly auditLines: number;
}

/** What the client has measured since it was asked last. */
export interface ClientReport {
  /** Milliseconds of each call. */
  readonly calls: readonly number[];
  /** Milliseconds between chunks of its stream. */
  readonly gaps: readonly number[];
  /** What went wrong: calls that failed, answers of another engine or call, tokens out of order. */
  readonly mistakes: readonly string[];
}

/** What the attacker is told. */
export type AttackerOrder = { readonly start: string; readonly url: string; readonly once: string } | { readonly stop: true };

/** What the attacker says at its first attempt. */
export interface AttackerBegun {
  readonly begun: true;
}

/** What the attacker has done since it was started. */
export interface AttackerReport {
  readonly tried: number;
  /** How often it was refused, by how. */
  readonly refused: Readonly<Record<string, number>>;
}
