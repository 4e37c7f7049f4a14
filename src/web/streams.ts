import { decodeRefused, decodeStreamChunks, decodeStreamEnd, decodeStreamOpened } from "../../generated/relay/decoders.ts";
import { encodeCancel, encodeStreamCredit, encodeStreamOpen } from "../../generated/relay/encoders.ts";
import type { RelayMessage } from "../../generated/relay/types.ts";
import { encodeTokenizedGenerateReqInput } from "../messages.ts";
import { AbortListeners } from "../transport/abort-listeners.ts";
import type { GenerateOptions, GenerateRequest, OutputStream } from "../transport/generation.ts";
import { OutputReaders } from "../transport/output-readers.ts";
import { fromFailure } from "../transport/relay/failure.ts";
import { EngineWireError } from "../wire/errors.ts";
import type { RelayLink } from "./link.ts";
import type { RelaySocket } from "./socket.ts";
import { RelayedStream } from "./stream.ts";

/** How long a request waits for a connection to the relay, in milliseconds. */
const waitMs = 60_000;

/** The streams of a link. One that was open over a connection that is lost has lost chunks, and ends. */
export class LinkStreams {
  readonly #link: RelayLink;
  readonly #open = new Map<number, RelayedStream>();
  /** Ids that callers chose or were given. The relay gives requests ids of its own. */
  readonly #rids = new Set<string>();
  readonly #signals = new AbortListeners();
  readonly #readers = new OutputReaders(() => `stream-${this.#count++}`);
  /** Credit to be given when the present turn of the event loop is over. */
  #credits: { readonly socket: RelaySocket; readonly ids: number[]; readonly credits: number[] } | undefined;
  #count = 0;

  constructor(link: RelayLink) {
    this.#link = link;
  }

  /** How many streams are open on an engine. */
  inFlight(engine: number): number {
    let count = 0;
    for (const stream of this.#open.values()) if (stream.engine === engine) count++;
    return count;
  }

  /** Opens a stream. Whatever is wrong with its request is read from it. */
  start(request: GenerateRequest, options: GenerateOptions): OutputStream {
    return this.#readers.open(request, options, (rid, bufferedTokens) => this.#start(request, rid, bufferedTokens, options));
  }

  /** Takes a message that may be about a stream. */
  received(tag: RelayMessage["$tag"], bytes: Uint8Array, socket: RelaySocket): void {
    // a stream's id means nothing on another connection
    const find = (id: number | null): RelayedStream | undefined => {
      const stream = id === null ? undefined : this.#open.get(id);
      return stream?.socket === socket ? stream : undefined;
    };
    switch (tag) {
      case "StreamOpened": {
        const { id, engine } = decodeStreamOpened(bytes);
        const stream = find(id);
        if (stream !== undefined) stream.engine = engine;
        return;
      }
      case "StreamChunks": {
        const { ids, chunks } = decodeStreamChunks(bytes);
        if (ids.length !== chunks.length) throw new EngineWireError("malformed", "the relay sent chunks without ids");
        for (const [index, chunk] of chunks.entries()) {
          find(ids[index] as number)?.queue.push(chunk);
        }
        return;
      }
      case "StreamEnd": {
        const { id, failure } = decodeStreamEnd(bytes);
        const stream = find(id);
        if (stream !== undefined) this.#end(stream, failure === null ? undefined : fromFailure(failure));
        return;
      }
      case "Refused": {
        const { id, failure } = decodeRefused(bytes);
        const stream = find(id);
        if (stream !== undefined) this.#end(stream, fromFailure(failure));
      }
    }
  }

  /** Sends what has waited for a connection. */
  welcomed(): void {
    for (const stream of this.#open.values()) if (stream.socket === undefined) this.#send(stream);
  }

  /** Ends the streams of a connection. */
  lost(socket: RelaySocket, cause: EngineWireError): void {
    for (const stream of this.#open.values()) {
      if (stream.socket !== socket) continue;
      const text = `the connection to the relay was lost while request ${stream.rid} ran: chunks are missing, and the relay aborts it`;
      this.#end(stream, new EngineWireError("outcome_unknown", text, { cause, stage: "reply" }));
    }
  }

  /** Ends all streams. */
  close(error: EngineWireError): void {
    for (const stream of this.#open.values()) this.#cancel(stream, error);
  }

  #start(request: GenerateRequest, rid: string, bufferedTokens: number, { signal, engine }: GenerateOptions): RelayedStream {
    const { status } = this.#link;
    if (status.state === "closed") throw new EngineWireError("closed", `the link is closed (${status.reason.reason})`, { stage: "queue" });
    if (signal?.aborted) throw new EngineWireError("aborted", "generate was aborted before anything was sent", { cause: signal.reason });
    if (this.#rids.has(rid))
      throw new EngineWireError("duplicate_request_id", `the request was not sent: rid ${JSON.stringify(rid)} is in flight`, {
        path: "rid",
      });
    const [payload, ...tensors] = encodeTokenizedGenerateReqInput({ ...request, rid: null, stream: request.stream ?? true });
    const stream = new RelayedStream(this.#link.newId(), rid, bufferedTokens, { request: payload, tensors, wanted: engine }, (left) => {
      left.queue.clear();
      this.#cancel(left, undefined);
    });
    this.#open.set(stream.id, stream);
    this.#rids.add(rid);
    if (signal !== undefined) {
      stream.ignoreSignal = this.#signals.add(signal, () => {
        stream.queue.clear();
        this.#cancel(stream, new EngineWireError("aborted", `request ${rid} was aborted`, { cause: signal.reason }));
      });
    }
    this.#send(stream);
    if (stream.socket === undefined) {
      const text = `request ${rid} was not sent within ${waitMs} ms: there is no connection to the relay`;
      stream.timer = setTimeout(() => this.#end(stream, new EngineWireError("unreachable", text, { stage: "queue" })), waitMs);
    }
    return stream;
  }

  #send(stream: RelayedStream): void {
    const socket = this.#link.current;
    if (socket === undefined) return;
    const { id, credit, bufferedTokens, message } = stream;
    clearTimeout(stream.timer);
    stream.socket = socket;
    stream.giveCredit = (more) => this.#credit(id, more, socket);
    const { request, tensors, wanted: engine = null } = message;
    socket.send(encodeStreamOpen({ id, request, tensors, engine, credit, bufferedTokens }));
  }

  /** Gives credit for all streams in one message: a relay limits messages, not streams that go on. */
  #credit(id: number, credit: number, socket: RelaySocket): void {
    const given = this.#credits;
    // what was gathered for a connection that is lost is sent to nobody
    if (given?.socket === socket) {
      given.ids.push(id);
      given.credits.push(credit);
      return;
    }
    const ids = [id];
    const credits = [credit];
    this.#credits = { socket, ids, credits };
    setTimeout(() => {
      if (this.#credits?.socket === socket) this.#credits = undefined;
      socket.send(encodeStreamCredit({ ids, credits }));
    });
  }

  #cancel(stream: RelayedStream, error: EngineWireError | undefined): void {
    if (!this.#open.has(stream.id)) return;
    stream.socket?.send(encodeCancel({ id: stream.id }));
    this.#end(stream, error);
  }

  #end(stream: RelayedStream, error: EngineWireError | undefined): void {
    if (!this.#open.delete(stream.id)) return;
    this.#rids.delete(stream.rid);
    this.#readers.ended(stream);
    clearTimeout(stream.timer);
    stream.ignoreSignal?.();
    stream.giveCredit = () => {};
    stream.queue.end(error);
  }
}
