import { EngineWireError } from "../wire/errors.ts";
import { RecentIds } from "./recent-ids.ts";

/** How long an engine keeps the abort of a request that it does not know, and then swallows the next one of that id. */
const abortKeptMs = 300_000;
/** An id that comes right behind the last output of its namesake ends the engine's process; this is far longer than a round. */
const finishedKeptMs = 10_000;

/** Makes ids, and refuses those that an engine must not see again yet. */
export class RequestIds {
  readonly #prefix = crypto.randomUUID().slice(0, 3);
  readonly #aborted: RecentIds;
  readonly #finished: RecentIds;
  #count = 0;

  constructor(now: number) {
    this.#aborted = new RecentIds(abortKeptMs, now);
    this.#finished = new RecentIds(finishedKeptMs, now);
  }

  /**
   * A new id, unique on the connection, which is all that its engines ever see. All have one length, so that none is the
   * beginning of another, and one that V8 cuts out of a batch as a copy: a longer piece would be a view, slow to compare.
   */
  next(): string {
    return `${this.#prefix}-${(this.#count++).toString(36).padStart(8, "0")}`;
  }

  /** Throws `duplicate_request_id` for an id that ended just before. */
  check(rid: string, now: number): void {
    if (this.#aborted.has(rid, now)) {
      const why = `was aborted within the last minutes: an engine may still keep that abort, and would swallow a new request of the id`;
      throw duplicate(rid, why);
    }
    if (this.#finished.has(rid, now))
      throw duplicate(rid, "ended a moment ago: its engine may not have let go of it, and its process would end");
  }

  /** The request of an id has ended by itself. */
  finished(rid: string, now: number): void {
    this.#finished.add(rid, now);
  }

  /** An abort of an id was sent. */
  aborted(rid: string, now: number): void {
    this.#aborted.add(rid, now);
  }

  /** Whether an abort of the id was sent a short time ago, so that output of it is no surprise. */
  wasAborted(rid: string, now: number): boolean {
    return this.#aborted.has(rid, now);
  }
}

/** The error for an id that is in use. */
export function duplicate(rid: string, why: string): EngineWireError {
  return new EngineWireError("duplicate_request_id", `the request was not sent: rid ${JSON.stringify(rid)} ${why}; use another id`, {
    path: "rid",
  });
}
