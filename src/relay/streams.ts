import { encodeStreamChunks, encodeStreamEnd, encodeStreamOpened } from "../../generated/relay/encoders.ts";
import type { StreamCredit, StreamOpen } from "../../generated/relay/types.ts";
import { decodeTokenizedGenerateReqInput } from "../messages.ts";
import type { OutputChunk, OutputStream } from "../transport/generation.ts";
import { toFailure } from "../transport/relay/failure.ts";
import { EngineWireError, isEngineWireError } from "../wire/errors.ts";
import { entryOf } from "./audit.ts";
import type { Caller } from "./call.ts";
import type { RelayContext } from "./context.ts";
import { checkLengths } from "./lengths.ts";
import type { Outbox } from "./outbox.ts";
import { requireScopes, scopesForGeneration } from "./scopes.ts";

/** Chunks in one message at most: more would keep a call's reply waiting. */
const mostChunks = 256;
/** Tokens that may wait in all of a client's streams are bounded through these: each stream has less the more there are. */
const mostUnread = 16_384;
const fairUnread = 65_536;

interface Relayed {
  readonly output: OutputStream;
  credit: number;
  cancelled: boolean;
  /** What made the relay give it up. */
  failure?: unknown;
  /** Ends the wait for credit. */
  wake: () => void;
}

/** The streams of one client. Each is read as fast as its credit, and the client's reading of all it is sent, allow. */
export class SessionStreams {
  readonly #context: RelayContext;
  readonly #caller: Caller;
  readonly #outbox: Outbox;
  readonly #ended: () => void;
  readonly #streams = new Map<number, Relayed>();
  #ids: number[] = [];
  #chunks: OutputChunk[] = [];

  /** Calls `ended` whenever a stream has. */
  constructor(context: RelayContext, caller: Caller, outbox: Outbox, ended: () => void) {
    this.#context = context;
    this.#caller = caller;
    this.#outbox = outbox;
    this.#ended = ended;
  }

  /** Streams open. */
  get size(): number {
    return this.#streams.size;
  }

  has(id: number): boolean {
    return this.#streams.has(id);
  }

  /** Opens a stream whose id is free. What is wrong with its request ends it. */
  open(message: StreamOpen): void {
    const { id, credit } = message;
    const start = performance.now();
    let output: OutputStream;
    try {
      output = this.#generate(message);
    } catch (error) {
      this.#end(id, error, start);
      return;
    }
    const stream: Relayed = { output, credit, cancelled: false, wake: () => {} };
    this.#streams.set(id, stream);
    const { engine, rid } = output;
    if (engine !== undefined) this.#outbox.send(encodeStreamOpened({ id, engine, rid }));
    void this.#relay(id, stream).then((error) => {
      // first, since it can find that the output cannot be handed on
      this.#flush();
      this.#streams.delete(id);
      this.#end(id, stream.failure ?? error, start);
      this.#ended();
    });
  }

  /** Lets streams go on; credit for one that has ended is late, and no mistake. */
  credit({ ids, credits }: StreamCredit): void {
    for (const [index, id] of ids.entries()) {
      const stream = this.#streams.get(id);
      if (stream === undefined) continue;
      stream.credit = Math.min(stream.credit + (credits[index] ?? 0), 0xffff_ffff);
      stream.wake();
    }
  }

  /** Gives a stream up; false where there is none. */
  cancel(id: number): boolean {
    const stream = this.#streams.get(id);
    if (stream === undefined) return false;
    stream.cancelled = true;
    void stream.output.return();
    stream.wake();
    return true;
  }

  /** Gives all up. */
  close(): void {
    for (const id of this.#streams.keys()) this.cancel(id);
  }

  #generate({ request: bytes, tensors, engine, bufferedTokens: wanted }: StreamOpen): OutputStream {
    const { client, limits } = this.#context;
    const { $tag: _, rid: __, ...request } = decodeTokenizedGenerateReqInput([bytes, ...tensors]);
    requireScopes("generate", scopesForGeneration(request), this.#caller.identity.scopes);
    checkLengths(request, limits.listLength);
    const bufferedTokens = Math.min(wanted ?? mostUnread, mostUnread, Math.floor(fairUnread / (this.#streams.size + 1)));
    return client.connection.generate(request, { engine: this.#engineFor(engine), bufferedTokens: Math.max(1, bufferedTokens) });
  }

  /** The engine, among those that the credential allows; undefined leaves the choice to the connection's routing. */
  #engineFor(wanted: number | null): number | undefined {
    const allowed = this.#caller.identity.engines;
    if (allowed === undefined) return wanted ?? undefined;
    if (wanted !== null) {
      if (allowed.includes(wanted)) return wanted;
      throw new EngineWireError("forbidden", `the request was not sent: the credential does not allow engine ${wanted}`, {
        operation: "generate",
        stage: "queue",
        engine: wanted,
        found: `engine ${wanted}`,
      });
    }
    const engines = this.#context.client.connection.engines.filter(({ index, state }) => state === "up" && allowed.includes(index));
    const [least] = engines.sort((a, b) => a.inFlight - b.inFlight);
    if (least === undefined)
      throw new EngineWireError("engine_dead", "the request was not sent: every engine that the credential allows is dead");
    return least.index;
  }

  /** Hands a stream's chunks on until it ends; resolves with what it failed with. */
  async #relay(id: number, stream: Relayed): Promise<unknown> {
    try {
      for (;;) {
        while (stream.credit === 0 && !stream.cancelled) await new Promise<void>((wake) => {
          stream.wake = wake;
        }); // biome-ignore format: one statement
        const { value, done } = await stream.output.next();
        // behind the wait for output: what many streams got in one batch must not leave at once
        while (!this.#outbox.hasRoom) await this.#outbox.room();
        if (stream.cancelled) return new EngineWireError("aborted", "the client gave the stream up");
        if (done) return undefined;
        stream.credit--;
        this.#push(id, value);
      }
    } catch (error) {
      return error;
    }
  }

  #push(id: number, chunk: OutputChunk): void {
    if (this.#ids.length === 0) setImmediate(() => this.#flush());
    this.#ids.push(id);
    this.#chunks.push(chunk);
    const ofPrompt = chunk.inputTokenLogprobs !== null || chunk.inputTopLogprobs !== null;
    if (ofPrompt || this.#ids.length >= mostChunks) this.#flush();
  }

  #flush(): void {
    if (this.#ids.length === 0) return;
    const ids = this.#ids;
    const chunks = this.#chunks;
    this.#ids = [];
    this.#chunks = [];
    try {
      this.#outbox.send(encodeStreamChunks({ ids, chunks }));
    } catch (error) {
      // an engine can say what a message of ours cannot hold, such as details that nest as deep as its own may
      if (ids.length === 1) this.#fail(ids[0] as number, error);
      else
        for (const [index, id] of ids.entries()) {
          this.#ids = [id];
          this.#chunks = [chunks[index] as OutputChunk];
          this.#flush();
        }
    }
  }

  /** Ends a stream whose output cannot be handed on. */
  #fail(id: number, error: unknown): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    stream.failure = error;
    this.cancel(id);
  }

  #end(id: number, error: unknown, start: number): void {
    const { audit, counter, log } = this.#context;
    const failure = error === undefined ? null : toFailure(error);
    if (failure !== null && !isEngineWireError(error))
      log({ level: "error", message: `a stream of session ${this.#caller.session} failed`, error });
    if (failure?.code === "forbidden")
      audit?.({ ...entryOf("denied", this.#caller), operation: "generate", outcome: failure.code, message: failure.message });
    counter.call("generate", failure?.code ?? "ok", performance.now() - start);
    this.#flush();
    this.#outbox.send(encodeStreamEnd({ id, failure }));
  }
}
