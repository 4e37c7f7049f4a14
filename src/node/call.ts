import type { Operation } from "../../generated/tokenspeed/operations.ts";
import type { ControlOutput, ControlRequestInit } from "../messages.ts";
import type { CallOptions, EngineReply } from "../transport/connection.ts";
import { EngineWireError, type EngineWireErrorDetails, type ErrorCode } from "../wire/errors.ts";
import type { Outgoing } from "./send-queue.ts";

/** One call under way: which engines it went to, what they said so far, and how it ends. */
export class Call {
  readonly operation: Operation;
  /** Indices on the wire, ascending. */
  readonly engines: readonly number[];
  readonly request: ControlRequestInit;
  readonly payload: Uint8Array;
  /** The release it is written for, where the caller said so. */
  readonly release: string | undefined;
  /** Resolves with the replies in engine order, or rejects once. */
  readonly result: Promise<readonly EngineReply[]>;
  /** The messages handed to the send queue, by engine; empty while the call waits for its lanes. */
  readonly outgoing = new Map<number, Outgoing>();
  readonly #onReply: ((reply: EngineReply) => void) | undefined;
  readonly #replies = new Map<number, EngineReply>();
  #sentAt = 0;
  #settled = false;
  #resolve!: (replies: readonly EngineReply[]) => void;
  #reject!: (error: EngineWireError) => void;

  constructor(
    operation: Operation,
    engines: readonly number[],
    request: ControlRequestInit,
    payload: Uint8Array,
    options: CallOptions = {},
  ) {
    this.operation = operation;
    this.engines = engines;
    this.request = request;
    this.payload = payload;
    this.release = options.release;
    this.#onReply = options.onReply;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Engines that have not answered. */
  get missing(): readonly number[] {
    return this.engines.filter((engine) => !this.#replies.has(engine));
  }

  /** Where the call stands: waiting for a lane, for the socket, or for replies. */
  get stage(): "queue" | "send" | "reply" {
    if (this.outgoing.size === 0) return "queue";
    for (const outgoing of this.outgoing.values()) if (outgoing.state === "queued") return "send";
    return "reply";
  }

  /** Notes the moment at which the request was handed to the socket. */
  sent(): void {
    this.#sentAt = performance.now();
  }

  /** Takes an engine's reply; the last one settles the call. */
  answer(engine: number, reply: ControlOutput): void {
    const answer = { engine, reply, durationMs: performance.now() - this.#sentAt };
    this.#replies.set(engine, answer);
    if (!this.#settled) this.#tell(answer);
    if (this.#replies.size < this.engines.length || this.#settled) return;
    this.#settled = true;
    this.#resolve(this.#inEngineOrder());
  }

  /** Fails the call with an error that carries the replies so far and who is missing. */
  fail(code: ErrorCode, message: string, details: EngineWireErrorDetails = {}): void {
    if (this.#settled) return;
    this.#settled = true;
    const context = { operation: this.operation.name, stage: this.stage, replies: this.#inEngineOrder(), missing: this.missing };
    this.#reject(new EngineWireError(code, `${this.operation.name} ${message}`, { ...context, ...details }));
  }

  /** A listener that throws must not end the receive loop: its error goes where those of event listeners go. */
  #tell(answer: EngineReply): void {
    try {
      this.#onReply?.(answer);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }

  #inEngineOrder(): readonly EngineReply[] {
    const replies: EngineReply[] = [];
    for (const engine of this.engines) {
      const reply = this.#replies.get(engine);
      if (reply !== undefined) replies.push(reply);
    }
    return replies;
  }
}
