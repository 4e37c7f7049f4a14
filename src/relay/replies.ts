import { encodeCompleted, encodeReply } from "../../generated/relay/encoders.ts";
import type { FailureInit, ReplyInit } from "../../generated/relay/types.ts";
import { encodeControlOutput } from "../messages.ts";
import type { EngineReply } from "../transport/connection.ts";

/**
 * Hands the replies of one call to its client, each as it comes. The last one waits for the call's end, which follows at
 * once, and tells it too: a message costs the relay and its client more than decoding a reply.
 */
export class Replies {
  /** What the client cannot be told: an engine may say what a message of ours cannot hold. */
  failure: unknown;
  readonly #id: number;
  readonly #send: (message: Uint8Array) => void;
  #missing: number;
  #last: ReplyInit | undefined;

  /** `count` engines are asked. Were they fewer or more than that, the end would come as a message of its own. */
  constructor(id: number, count: number, send: (message: Uint8Array) => void) {
    this.#id = id;
    this.#missing = count;
    this.#send = send;
  }

  /** Takes a reply. Never throws: from where it is called, that would end the process. */
  add({ engine, reply, durationMs }: EngineReply): void {
    try {
      this.#tell();
      this.#last = { id: this.#id, engine, reply: encodeControlOutput(reply), durationMs };
      if (--this.#missing !== 0) this.#tell();
    } catch (error) {
      this.failure = error;
    }
  }

  /** Tells the end. */
  complete(failure: FailureInit | null): void {
    const completed = failure === null && this.#last !== undefined;
    this.#tell(completed);
    if (!completed) this.#send(encodeCompleted({ id: this.#id, failure }));
  }

  #tell(completed = false): void {
    if (this.#last === undefined) return;
    this.#send(encodeReply({ ...this.#last, completed }));
    this.#last = undefined;
  }
}
