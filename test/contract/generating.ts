import { onTestFinished } from "vitest";
import { type SimulatedEngineOptions, startEngine } from "../../src/testing/index.ts";
import { type Arrival, encodeGenerate, encodeOperation, type GenerateExtras, RawFrontend } from "./engine-frontend.ts";

/** What came of one request so far. */
export interface Stream {
  readonly tokens: number[];
  readonly logprobs: number[];
  /** The batches its rows were in, as columns without the tag, and its row's place in each. */
  readonly rows: { readonly columns: readonly unknown[]; readonly row: number }[];
  cachedTokens: number;
  /** Its finish reason in full, once it ended. */
  finish: unknown;
}

/** A group of simulated engines and a bare frontend that follows requests and replies. */
export class Generating {
  readonly engine: Awaited<ReturnType<typeof startEngine>>;
  readonly #frontend: RawFrontend;
  readonly #watchers = new Set<() => void>();
  /** Everything that happened, in order: `finish a`, `reply PauseScheduler true`, `dead`. */
  readonly log: string[] = [];
  /** Replies by tag. */
  readonly #replies = new Map<string, Record<string, unknown>[]>();
  readonly #streams = new Map<string, Stream>();
  /** Batches so far. */
  batches = 0;

  private constructor(frontend: RawFrontend, engine: Awaited<ReturnType<typeof startEngine>>) {
    this.#frontend = frontend;
    this.engine = engine;
  }

  /** Starts engines, which end with the test. */
  static async start(options: Omit<SimulatedEngineOptions, "handshake"> = {}): Promise<Generating> {
    let arrived = (_: Arrival) => {};
    const frontend = await RawFrontend.bind(options.ranks ?? 1, (_, arrival) => arrived(arrival));
    const [engine] = await Promise.all([startEngine({ handshake: frontend.address, ...options }), frontend.accept()]);
    onTestFinished(async () => {
      await engine.close();
      frontend.close();
    });
    const generating = new Generating(frontend, engine);
    arrived = (arrival) => generating.#arrived(arrival);
    return generating;
  }

  /** Sends a request. */
  generate(rid: string, prompt: readonly number[], maxNewTokens: number, extras: GenerateExtras & { stop?: number[] } = {}): Stream {
    const { stop = null, ...more } = extras;
    this.#frontend.send(0, [Uint8Array.of(0), encodeGenerate(rid, prompt, maxNewTokens, stop, more)]);
    return this.stream(rid);
  }

  /** What is known of a request. */
  stream(rid: string): Stream {
    const stream = this.#streams.get(rid) ?? { tokens: [], logprobs: [], rows: [], cachedTokens: -1, finish: null };
    this.#streams.set(rid, stream);
    return stream;
  }

  /** Sends an operation and waits for its reply. */
  async call(op: string, fields: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const replies = this.#repliesTo(op);
    const before = replies.length;
    this.send(op, fields);
    await this.until(() => replies.length > before);
    return replies[before] ?? {};
  }

  /** Sends an operation. */
  send(op: string, fields: Record<string, unknown> = {}): void {
    this.#frontend.send(0, [Uint8Array.of(2), encodeOperation(op, fields)]);
  }

  /** Waits until the engine's connection is lost, and for what came before. */
  async gone(): Promise<void> {
    await this.#frontend.gone[0];
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Waits until this holds. */
  until(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!holds()) return;
        this.#watchers.delete(look);
        resolve();
      };
      this.#watchers.add(look);
      look();
    });
  }

  /** Waits until a request ended. */
  async finished(stream: Stream): Promise<Stream> {
    await this.until(() => stream.finish !== null);
    return stream;
  }

  #repliesTo(op: string): Record<string, unknown>[] {
    const replies = this.#replies.get(op) ?? [];
    this.#replies.set(op, replies);
    return replies;
  }

  #arrived(arrival: Arrival): void {
    if (arrival.kind === "batch") this.#takeBatch(arrival.columns);
    else if (arrival.kind === "reply") {
      const op = arrival.tag.replace(/ReqOutput$/, "");
      this.log.push(`reply ${op} ${arrival.fields.success}`);
      this.#repliesTo(op).push(arrival.fields);
    } else this.log.push(arrival.kind);
    for (const watcher of this.#watchers) watcher();
  }

  #takeBatch(columns: readonly unknown[]): void {
    this.batches += 1;
    const [rids, ids, finishes, , , cached, logprobs] = columns as [
      string[],
      number[][],
      string[],
      number[],
      number[],
      number[],
      number[][],
    ];
    const details = (columns[13] ?? []) as unknown[];
    for (const [row, rid] of rids.entries()) {
      const stream = this.stream(rid);
      stream.tokens.push(...(ids[row] ?? []));
      stream.logprobs.push(...(logprobs[row] ?? []));
      stream.rows.push({ columns, row });
      stream.cachedTokens = cached[row] ?? -1;
      if (finishes[row] === "") continue;
      stream.finish = details[row] ?? finishes[row];
      this.log.push(`finish ${rid}`);
    }
  }
}
