import type { ConnectionEvent, EventCounts } from "./connection.ts";

const counted = {
  late_reply: "lateReplies",
  lost_reply: "lostReplies",
  unexpected_reply: "unexpectedReplies",
  unknown_tag: "unknownTags",
  malformed_message: "malformedMessages",
  unexpected_message: "unexpectedMessages",
  unexpected_output: "unexpectedOutputs",
} as const satisfies Partial<Record<ConnectionEvent["type"], keyof EventCounts>>;

/** Counts what was seen and survived, whether or not anybody reads the events. */
export class EventCounter {
  readonly #counts: { -readonly [Name in keyof EventCounts]: number } = {
    lateReplies: 0,
    lostReplies: 0,
    unexpectedReplies: 0,
    unknownTags: 0,
    malformedMessages: 0,
    unexpectedMessages: 0,
    unexpectedOutputs: 0,
  };

  /** Adds an event to its count. */
  add(event: ConnectionEvent): void {
    if (event.type in counted) this.#counts[counted[event.type as keyof typeof counted]]++;
  }

  /** The counts so far, as a copy. */
  get counts(): EventCounts {
    return { ...this.#counts };
  }
}
