import { decode, encode } from "@msgpack/msgpack";
import { Pull, Router } from "zeromq";
import { tokenspeed } from "../../schema/tokenspeed/index.ts";

/** A message of an engine's output socket. */
export type Arrival =
  | { readonly kind: "dead" }
  | { readonly kind: "batch"; readonly columns: readonly unknown[] }
  | { readonly kind: "unknown"; readonly value: unknown }
  | { readonly kind: "reply"; readonly tag: string; readonly fields: Readonly<Record<string, unknown>> };

const structs = new Map(tokenspeed.operations.flatMap(({ request, reply }) => [request, reply]).map((struct) => [struct.name, struct]));
const requests = new Map(tokenspeed.operations.map(({ request }) => [request.name.replace(/Req(Input)?$/, ""), request]));
/** What a script's `send` fills in where the wire has no default. */
const filledIn: Readonly<Record<string, unknown>> = { flush_cache: true, load_format: null, weight_version: null };

function fieldsOf(name: string) {
  const struct = structs.get(name);
  if (struct === undefined) throw new Error(`no struct is named ${name}`);
  return [...(struct.extends?.fields ?? []), ...struct.fields];
}

/** The payload of a control operation, every field written. */
export function encodeOperation(op: string, given: Readonly<Record<string, unknown>>): Uint8Array {
  const request = requests.get(op);
  if (request === undefined) throw new Error(`no operation is named ${op}`);
  const values = fieldsOf(request.name).map(({ name, ...field }) => {
    if (name in given) return given[name];
    if ("default" in field) return field.default;
    if (name in filledIn) return filledIn[name];
    throw new Error(`${op} needs ${name}`);
  });
  return encode([request.name, ...values]);
}

/** The tag of an operation's reply. */
export function replyTagOf(op: string): string {
  return tokenspeed.operations.find(({ request }) => request === requests.get(op))?.reply.name ?? "";
}

/** What an ADD may say besides. */
export interface GenerateExtras {
  readonly minNewTokens?: number;
  readonly ignoreEos?: boolean;
  readonly streamInterval?: number;
  readonly returnLogprob?: boolean;
  readonly logprobStartLen?: number;
  readonly topLogprobsNum?: number;
}

/** The payload of an ADD. */
export function encodeGenerate(
  rid: string,
  inputIds: readonly number[],
  maxNewTokens: number,
  stopTokenIds: readonly number[] | null,
  extras: GenerateExtras = {},
): Uint8Array {
  const { minNewTokens = 0, ignoreEos = false, streamInterval = null } = extras;
  const sampling: unknown[] = [maxNewTokens, null, stopTokenIds, 1, 1, -1, 0, 0, 0, 1, minNewTokens, null, null, null, null, ignoreEos];
  sampling.push(true, true, false, null, null, streamInterval);
  const { returnLogprob = false, logprobStartLen = -1, topLogprobsNum = 0 } = extras;
  const logprobs = [returnLogprob, logprobStartLen, topLogprobsNum, null];
  return encode(["TokenizedGenerateReqInput", rid, null, null, inputIds, sampling, ...logprobs, true]);
}

function readArrival(frame: Uint8Array): Arrival {
  if (Buffer.from(frame).toString("latin1") === "ENGINE_CORE_DEAD") return { kind: "dead" };
  const value = decode(frame);
  const [tag, ...columns] = (Array.isArray(value) ? value : []) as [string, ...unknown[]];
  if (tag === "BatchTokenIDOutSlim") return { kind: "batch", columns };
  if (!structs.has(tag)) return { kind: "unknown", value };
  const names = fieldsOf(tag).map(({ name }) => name);
  if (names.length !== columns.length) throw new Error(`${tag} came with ${columns.length} fields`);
  return { kind: "reply", tag, fields: Object.fromEntries(names.map((name, index) => [name, columns[index]])) };
}

function identityOf(index: number): Buffer {
  return Buffer.from([index & 0xff, index >> 8]);
}

/**
 * A frontend as bare as the wire allows, independent of this package's own: one handshake ROUTER, one input ROUTER, and
 * an output PULL for each engine.
 */
export class RawFrontend {
  readonly #handshake = new Router({ linger: 0 });
  readonly #input = new Router({ linger: 0 });
  readonly #outputs: Pull[] = [];
  /** By engine, resolved once its output's connection is lost. */
  readonly gone: Promise<void>[] = [];
  readonly #engines: number;
  #sending: Promise<void> = Promise.resolve();

  private constructor(engines: number) {
    this.#engines = engines;
  }

  /** Binds the sockets; `arrived` hears every message of an output. */
  static async bind(engines: number, arrived: (engine: number, arrival: Arrival) => void): Promise<RawFrontend> {
    const frontend = new RawFrontend(engines);
    await frontend.#handshake.bind("tcp://127.0.0.1:*");
    await frontend.#input.bind("tcp://127.0.0.1:*");
    for (let engine = 0; engine < engines; engine += 1) {
      const output = new Pull({ linger: 0 });
      frontend.gone.push(new Promise((resolve) => output.events.on("disconnect", () => resolve())));
      await output.bind("tcp://127.0.0.1:*");
      frontend.#outputs.push(output);
      void frontend.#read(output, ([frame]) => frame && arrived(engine, readArrival(frame)));
    }
    return frontend;
  }

  /** Where engines dial. */
  get address(): string {
    return this.#handshake.lastEndpoint ?? "";
  }

  /** Answers every engine's HELLO and waits until all are ready and registered. */
  async accept(): Promise<void> {
    const ready = new Set<number>();
    const registered = new Set<number>();
    const inputs = [this.#input.lastEndpoint];
    const registrations = (async () => {
      while (registered.size < this.#engines) {
        const [identity] = await this.#input.receive();
        registered.add((identity as Buffer).readUInt16LE());
      }
    })();
    registrations.catch(() => {});
    while (ready.size < this.#engines) {
      const [identity, payload] = (await this.#handshake.receive()) as [Buffer, Buffer];
      const engine = identity.readUInt16LE();
      const { status } = decode(payload) as { status: string };
      if (status === "READY") ready.add(engine);
      if (status !== "HELLO") continue;
      const addresses = { inputs, outputs: [this.#outputs[engine]?.lastEndpoint] };
      await this.#handshake.send([identity, encode({ addresses, parallel_config: {} })]);
    }
    await registrations;
  }

  /** Sends frames to one engine, in the order of calls. */
  send(engine: number, frames: readonly Uint8Array[]): void {
    this.#sending = this.#sending.then(() => this.#input.send([identityOf(engine), ...frames]));
  }

  close(): void {
    for (const socket of [this.#handshake, this.#input, ...this.#outputs]) socket.close();
  }

  async #read(socket: Pull, deliver: (frames: Uint8Array[]) => void): Promise<void> {
    while (!socket.closed) {
      const frames = await socket.receive().catch(() => undefined);
      if (frames === undefined) return;
      deliver(frames);
    }
  }
}
