// What a driver tells its engine processes, and what they tell it.

/**
 * How an obedient engine answers a setInternalState. The request itself says so, beside its id; all but the last three end
 * with the right reply, which echoes the id and names the engine.
 */
export const manners = [
  "plainly",
  "late",
  "twice",
  "after another kind",
  "truncated first",
  "oversized first",
  "with trailing bytes first",
  "with a wrong tag first",
  "with an unknown tag first",
  "with two frames first",
  "with an empty frame first",
  "with half a sentinel first",
  "never",
  "with its end",
  "under a flood",
] as const;

export type Manner = (typeof manners)[number];

/** The arguments of a setInternalState for an obedient engine. */
export interface Task {
  /** Comes back in the reply. */
  readonly id: string;
  readonly answer: Manner;
  /** How late, or how many messages the flood has. */
  readonly amount?: number;
}

/** How far an engine goes with the handshake; only the whole of it connects an output to its frontend. */
export type Opening = "whole" | "registers twice" | "dead output";

/** Starts an engine in a host. */
export interface HostOrder {
  readonly address: string;
  readonly index: number;
  readonly opening: Opening;
}

/** Closes a host's engines. */
export const stopOrder = "stop";

/** What a host reports. */
export type HostReport = { readonly up: number } | { readonly failed: string } | { readonly received: string };
