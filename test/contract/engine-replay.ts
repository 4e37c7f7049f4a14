import { encode } from "@msgpack/msgpack";
import { type Arrival, encodeGenerate, encodeOperation, RawFrontend, replyTagOf } from "./engine-frontend.ts";
import type { EngineStarter, EngineUnderTest, Observed, RecordedReply, RecordedRequest, Script, Step } from "./engine-scripts.ts";

/** How much longer than recorded a wait may take on a busy machine before it counts as missed. */
const patience = 4;
/** How long the frontend reads on after the last step. */
const readOnMs = 60;
/** Replies that a refusal on arrival begins with, which overtake an older one of their kind. */
const refusals = [
  "a pause is already in progress",
  "a pause or release is already in progress",
  "memory is unavailable;",
  "invalid pause mode:",
  "memory saver not enabled",
  "invalid tags:",
  "tags not releasable",
  "tags already released",
  "a keep pause froze",
  "cannot release memory:",
  "memory regions ",
  "L3 ",
];

interface Sent {
  readonly id: string;
  readonly tag: string;
  readonly to: readonly number[];
}

interface Stream {
  readonly engine: number;
  aborted: boolean;
  finish: string | null;
  details: unknown;
  tokens: number;
  promptTokens: number;
  cachedTokens: number;
  contiguous: boolean;
  chunks: number;
}

/** One run of a script: what was sent, and what came of it. */
class Run {
  readonly #script: Script;
  readonly #sent: Sent[] = [];
  readonly #owed = new Map<string, string[]>();
  readonly #replies = new Map<string, Map<number, RecordedReply>>();
  readonly #order: string[][];
  readonly #streams = new Map<string, Stream>();
  readonly #dead = new Set<number>();
  readonly #watchers = new Set<() => void>();
  /** What should not have come at all. */
  readonly surprises: string[] = [];

  constructor(script: Script) {
    this.#script = script;
    this.#order = Array.from({ length: script.ranks }, () => []);
  }

  arrived(engine: number, arrival: Arrival): void {
    if (arrival.kind === "dead") this.#dead.add(engine);
    else if (arrival.kind === "batch") this.#takeBatch(arrival.columns);
    else if (arrival.kind === "reply") this.#takeReply(engine, arrival);
    else this.surprises.push(`engine ${engine} sent ${JSON.stringify(arrival.value)}`);
    for (const watcher of this.#watchers) watcher();
  }

  async play(frontend: RawFrontend, engine: EngineUnderTest): Promise<Observed> {
    let exited = false;
    void engine.exited.then(() => {
      exited = true;
      for (const watcher of this.#watchers) watcher();
    });
    const checks: Record<string, unknown>[] = [];
    for (const [index, step] of this.#script.steps.entries()) {
      const check = await this.#play(step, frontend, () => exited);
      if (check !== undefined) checks.push({ step: index, ...check });
    }
    await sleep(readOnMs);
    return {
      replies: Object.fromEntries(
        this.#sent.map(({ id, to }) => [id, Object.fromEntries(to.map((at) => [at, this.#replies.get(id)?.get(at) ?? null]))]),
      ),
      order: Object.fromEntries(this.#order.entries()),
      requests: Object.fromEntries([...this.#streams].map(([rid, stream]) => [rid, recorded(stream)])),
      checks,
      dead: [...this.#dead].sort(),
    };
  }

  async #play(step: Step, frontend: RawFrontend, exited: () => boolean): Promise<Record<string, unknown> | undefined> {
    if ("send" in step || "raw" in step) {
      this.#send(step, frontend);
      return undefined;
    }
    if ("generate" in step) {
      const { rid, input_ids, max_new_tokens, sampling } = step.generate;
      const [engine] = step.to as [number];
      this.#streams.set(rid, newStream(engine));
      frontend.send(engine, [Uint8Array.of(0), encodeGenerate(rid, input_ids, max_new_tokens, sampling?.stop_token_ids ?? null)]);
      return undefined;
    }
    if ("abort" in step) {
      for (const rid of step.abort) {
        const stream = this.#streams.get(rid);
        if (stream !== undefined) stream.aborted = true;
      }
      for (const engine of step.to) frontend.send(engine, [Uint8Array.of(1), encode(step.abort)]);
      return undefined;
    }
    if ("sleepMs" in step) {
      await sleep(step.sleepMs);
      return undefined;
    }
    if ("await" in step || "awaitNone" in step) {
      const id = "await" in step ? step.await : step.awaitNone;
      const from = step.from ?? this.#sent.find((sent) => sent.id === id)?.to ?? [];
      const answered = () => from.filter((engine) => this.#replies.get(id)?.has(engine));
      if ("await" in step) await this.#until(() => answered().length === from.length, step.withinMs * patience);
      else await sleep(step.forMs);
      return { answered: answered() };
    }
    if ("awaitTokens" in step) {
      const reached = () => (this.#streams.get(step.awaitTokens)?.tokens ?? 0) >= step.atLeast;
      return { reached: await this.#until(reached, step.withinMs * patience) };
    }
    if ("awaitNoTokens" in step) {
      const seen = () => this.#streams.get(step.awaitNoTokens)?.chunks ?? 0;
      const before = seen();
      await sleep(step.forMs);
      return { quiet: seen() === before };
    }
    if ("awaitFinish" in step) {
      const finished = () => (this.#streams.get(step.awaitFinish)?.finish ?? null) !== null;
      return { finished: await this.#until(finished, step.withinMs * patience) };
    }
    if ("expectDead" in step) {
      const dead = () => step.expectDead.filter((engine) => this.#dead.has(engine));
      await this.#until(() => dead().length === step.expectDead.length, step.withinMs * patience);
      return { dead: dead() };
    }
    return { exited: await this.#until(exited, step.withinMs * patience) };
  }

  #send(step: Extract<Step, { to: unknown }>, frontend: RawFrontend): void {
    const to = step.to === "all" ? Array.from(this.#order.keys()) : (step.to as readonly number[]);
    const op = "send" in step ? step.send.op : "raw" in step ? step.op : undefined;
    const id = "id" in step ? step.id : undefined;
    const frames =
      "send" in step
        ? [Uint8Array.of(2), encodeOperation(step.send.op, step.send.fields ?? {})]
        : "raw" in step
          ? step.raw.map((hex) => Buffer.from(hex, "hex"))
          : [];
    if (op !== undefined && id !== undefined) {
      const tag = replyTagOf(op);
      this.#sent.push({ id, tag, to });
      this.#replies.set(id, new Map());
      for (const engine of to) this.#owedBy(engine, tag).push(id);
    }
    for (const engine of to) frontend.send(engine, frames);
  }

  #takeReply(engine: number, { tag, fields }: Extract<Arrival, { kind: "reply" }>): void {
    const owed = this.#owedBy(engine, tag);
    const message = String(fields.message ?? "");
    const overtakes = owed.length > 1 && refusals.some((start) => message.startsWith(start));
    const [id] = owed.splice(overtakes ? 1 : 0, 1);
    if (id === undefined) {
      this.surprises.push(`engine ${engine} sent ${tag} ${JSON.stringify(fields)} that nobody waits for`);
      return;
    }
    const running = [...this.#streams].filter(([, stream]) => stream.engine === engine && stream.finish === null && !stream.aborted);
    this.#replies.get(id)?.set(engine, { tag, fields, unfinished: running.map(([rid]) => rid) });
    this.#order[engine]?.push(id);
  }

  #takeBatch(columns: readonly unknown[]): void {
    const [rids, ids, finishes, prompts, completions, cached] = columns as [string[], number[][], string[], number[], number[], number[]];
    const details = columns[13] as unknown[];
    for (const [row, rid] of rids.entries()) {
      const stream = this.#streams.get(rid);
      const tokens = ids[row] ?? [];
      if (stream === undefined || stream.finish !== null) {
        this.surprises.push(`an output for ${rid}, which does not run`);
        continue;
      }
      stream.contiguous &&= tokens.every((token, index) => token === 1000 + stream.tokens + index);
      stream.tokens += tokens.length;
      stream.contiguous &&= completions[row] === stream.tokens;
      stream.chunks += 1;
      stream.promptTokens = prompts[row] ?? -1;
      stream.cachedTokens = cached[row] ?? -1;
      if (finishes[row] !== "") {
        stream.finish = finishes[row] ?? null;
        stream.details = details[row] ?? null;
      }
    }
  }

  #owedBy(engine: number, tag: string): string[] {
    const key = `${engine} ${tag}`;
    const owed = this.#owed.get(key) ?? [];
    this.#owed.set(key, owed);
    return owed;
  }

  /** Whether `holds` came true in time. */
  #until(holds: () => boolean, withinMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const look = () => {
        if (holds()) end(true);
      };
      const timer = setTimeout(() => end(holds()), withinMs);
      const end = (held: boolean) => {
        clearTimeout(timer);
        this.#watchers.delete(look);
        resolve(held);
      };
      this.#watchers.add(look);
      look();
    });
  }
}

function newStream(engine: number): Stream {
  return {
    engine,
    aborted: false,
    finish: null,
    details: null,
    tokens: 0,
    promptTokens: 0,
    cachedTokens: 0,
    contiguous: true,
    chunks: 0,
  };
}

function recorded({ engine, finish, details, tokens, promptTokens, cachedTokens, contiguous, chunks }: Stream): RecordedRequest {
  const exact = finish === "length" || finish === "stop" || tokens === 0;
  const request = { engine, finish, details, tokens: exact ? tokens : ("some" as const) };
  return chunks === 0 ? request : { ...request, promptTokens, cachedTokens, contiguous };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Runs a script against fresh engines and returns what it observed, and what should not have come. */
export async function replay(script: Script, start: EngineStarter): Promise<{ observed: Observed; surprises: readonly string[] }> {
  const run = new Run(script);
  const frontend = await RawFrontend.bind(script.ranks, (engine, arrival) => run.arrived(engine, arrival));
  const engine = start(frontend.address, script.ranks, script.flags);
  try {
    await Promise.all([frontend.accept(), engine.ready]);
    const observed = await run.play(frontend, engine);
    return { observed, surprises: run.surprises };
  } finally {
    await engine.stop();
    frontend.close();
  }
}

function matches(pattern: string, text: unknown): boolean {
  const [start = "", end = ""] = pattern.split("*");
  return typeof text === "string" && text.startsWith(start) && text.endsWith(end) && text.length >= pattern.length - 1;
}

/** What was observed with everything taken out that a script leaves open, so that it can be compared. */
export function comparable(observed: Observed, expected: Observed): unknown {
  const replies = Object.entries(observed.replies).map(([id, byEngine]) => {
    const compared = Object.entries(byEngine).map(([engine, reply]) => {
      const wanted = expected.replies[id]?.[engine];
      if (reply === null || !wanted) return [engine, reply];
      const { message, ...fields } = reply.fields;
      const open = wanted.device === true;
      const text = !open ? message : wanted.messagePattern === undefined ? undefined : matches(wanted.messagePattern, message);
      return [engine, { tag: reply.tag, fields, text, unfinished: [...reply.unfinished].sort() }];
    });
    return [id, Object.fromEntries(compared)];
  });
  return { ...observed, replies: Object.fromEntries(replies) };
}
