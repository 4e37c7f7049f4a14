// Recorded scripts played by our client: control operations through lanes, generation through streams.
import { type Client, type EngineReply, type OutputStream, operations } from "../../src/index.ts";
import { type ControlRequestInit, encodeControlRequest } from "../../src/messages.ts";
import { codeOf } from "../peers/error-code.ts";
import { structs, wireFields } from "../peers/schema-structs.ts";
import { comparable } from "./engine-replay.ts";
import { type Observed, type RecordedRequest, type Script, type Step, scripts } from "./engine-scripts.ts";

type Send = Extract<Step, { readonly send: object }>;
type Generate = Extract<Step, { readonly generate: object }>;

/** The operation that a script calls `op`. */
export function operationOf(op: string) {
  const found = Object.values(operations).find(({ request }) => request.replace(/Req(Input)?$/, "") === op);
  if (found === undefined) throw new Error(`there is no operation ${op}`);
  return found;
}

/** What a script's `send` fills in where the wire has no default. */
const filledIn: Readonly<Record<string, unknown>> = { flush_cache: true, load_format: null, weight_version: null };

function requestOf({ op, fields = {} }: Send["send"]): ControlRequestInit {
  const $tag = operationOf(op).request;
  const given = (structs.get($tag)?.fields ?? []).flatMap(({ name, property, ...field }) => {
    if (name in fields) return [[property, fields[name]]];
    return "default" in field || !(name in filledIn) ? [] : [[property, filledIn[name]]];
  });
  return { $tag, ...Object.fromEntries(given) } as ControlRequestInit;
}

const enginesOf = (script: Script, to: "all" | readonly number[]) =>
  to === "all" ? Array.from({ length: script.ranks }, (_, rank) => rank) : to;

/** Why our client cannot play a script, or `undefined`. */
function leftOutBecause(script: Script): string | undefined {
  const out = new Set<string>();
  const sentAs = new Map<string, readonly string[]>();
  const rids = new Set<string>();
  if (script.topics.includes("malformed")) return "it sends what is not a message";
  if (script.topics.includes("order")) return "it is about the order of replies on the wire";
  if (Object.values(script.observed.replies).some((byEngine) => Object.values(byEngine).includes(null))) return "a reply never comes";
  for (const step of script.steps) {
    if ("generate" in step) {
      if (step.generate.input_ids.length === 0) return "our client refuses a request to generate";
      if (rids.has(step.generate.rid)) return "it uses a request id twice";
      rids.add(step.generate.rid);
    } else if ("abort" in step) {
      if (step.abort.some((rid) => !rids.has(rid))) return "it aborts a request that it did not send";
    } else if ("send" in step) {
      const { reply, answers } = operationOf(step.send.op);
      const to = enginesOf(script, step.to);
      if (answers === "gated" && to.length < script.ranks) return "a gated operation goes to some engines only";
      if (codeOf(() => encodeControlRequest(requestOf(step.send))) !== undefined) return "our encoder refuses a request";
      const lanes = to.map((engine) => `${engine} ${reply}`);
      if (lanes.some((lane) => out.has(lane))) return "two operations of a kind are out at one engine";
      for (const lane of lanes) out.add(lane);
      sentAs.set(step.id, lanes);
    } else if ("await" in step) {
      if (step.from !== undefined && step.from.length < (sentAs.get(step.await)?.length ?? 0))
        return "it goes on behind a part of the replies";
      for (const lane of sentAs.get(step.await) ?? []) out.delete(lane);
    } else if ("expectDead" in step || "expectExit" in step) {
      return "engines end";
    } else if ("raw" in step) {
      return "it sends what is not a message";
    }
  }
  return undefined;
}

/** How many scripts each rule leaves out: one that is no longer played must not go unnoticed. */
export const leftOut = {
  "a gated operation goes to some engines only": 4,
  "a reply never comes": 4,
  "it aborts a request that it did not send": 2,
  "it goes on behind a part of the replies": 3,
  "it is about the order of replies on the wire": 2,
  "it sends what is not a message": 3,
  "our client refuses a request to generate": 1,
  "our encoder refuses a request": 2,
  "two operations of a kind are out at one engine": 1,
};

const verdicts = scripts.map((script) => ({ script, because: leftOutBecause(script) }));

/** The scripts that our client can play. */
export const played = verdicts.filter(({ because }) => because === undefined).map(({ script }) => script);

/** What `leftOut` says, counted. */
export function ruleCounts(): Readonly<Record<string, number>> {
  const counts = new Map<string, number>();
  for (const { because } of verdicts) if (because !== undefined) counts.set(because, (counts.get(because) ?? 0) + 1);
  return Object.fromEntries(counts);
}

/** What is compared: not what a frontend of raw sockets sees besides. */
export function comparableOf(played: Pick<Observed, "replies" | "requests">, { observed }: Script): readonly [unknown, unknown] {
  const compared = ({ replies, requests }: Pick<Observed, "replies" | "requests">) => {
    const without = Object.entries(replies).map(([id, byEngine]) => {
      const finished = Object.entries(byEngine).map(([engine, reply]) => [engine, reply && { ...reply, unfinished: [] }]);
      return [id, Object.fromEntries(finished)];
    });
    return comparable({ ...observed, requests, replies: Object.fromEntries(without) }, observed);
  };
  return [compared(played), compared(observed)];
}

/** What became of a request, read from its stream. */
class Reading {
  readonly engine: number;
  readonly stream: OutputStream;
  readonly ended: Promise<void>;
  finish: string | null = null;
  tokens = 0;
  #details: unknown = null;
  #contiguous = true;
  #counts: { readonly promptTokens: number; readonly cachedTokens: number } | undefined;
  readonly #watchers = new Set<() => void>();

  constructor(engine: number, stream: OutputStream) {
    this.engine = engine;
    this.stream = stream;
    this.ended = this.#read();
    // one that still runs when the script is over ends with its connection
    this.ended.catch(() => {});
  }

  async #read(): Promise<void> {
    for await (const chunk of this.stream) {
      for (const id of chunk.outputIds) this.#contiguous &&= id === 1000 + this.tokens++;
      this.#contiguous &&= chunk.completionTokens === this.tokens;
      this.#counts = { promptTokens: chunk.promptTokens, cachedTokens: chunk.cachedTokens };
      this.finish = chunk.finishReason;
      this.#details = chunk.finishDetails;
      for (const watcher of this.#watchers) watcher();
    }
  }

  /** Resolves when so many tokens have come. */
  reaches(tokens: number): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.tokens < tokens) return;
        this.#watchers.delete(look);
        resolve();
      };
      this.#watchers.add(look);
      look();
    });
  }

  get recorded(): RecordedRequest {
    const exact = this.finish === "length" || this.finish === "stop" || this.tokens === 0;
    const request = { engine: this.engine, finish: this.finish, details: this.#details, tokens: exact ? this.tokens : ("some" as const) };
    return this.#counts === undefined ? request : { ...request, ...this.#counts, contiguous: this.#contiguous };
  }
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Plays a script and returns the replies and requests as the recorder writes them. Half of the operations go by the connection. */
export async function play(script: Script, client: Client): Promise<Pick<Observed, "replies" | "requests">> {
  const calls = new Map<string, Promise<readonly EngineReply[]>>();
  const readings = new Map<string, Reading>();

  function call(step: Send, through: "client" | "connection"): Promise<readonly EngineReply[]> {
    const engines = [...enginesOf(script, step.to)];
    const addressed = engines.length === script.ranks ? {} : { engines };
    const request = requestOf(step.send);
    return through === "client" ? client.control(request, { guard: false, ...addressed }) : client.connection.call(request, addressed);
  }

  function generate({ generate: { rid, input_ids: inputIds, max_new_tokens: maxNewTokens, sampling }, to }: Generate): Reading {
    const stopTokenIds = sampling?.stop_token_ids ?? null;
    const engine = to[0] as number;
    return new Reading(engine, client.connection.generate({ rid, inputIds, samplingParams: { maxNewTokens, stopTokenIds } }, { engine }));
  }

  /** Waits for what came in the recording; for what did not, as long as that did. */
  async function comes(index: number, what: Promise<void> | undefined, withinMs: number): Promise<void> {
    const check = script.observed.checks.find(({ step }) => step === index);
    await (check?.reached === false || check?.finished === false ? sleep(withinMs) : what);
  }

  for (const [index, step] of script.steps.entries()) {
    if ("send" in step) {
      const sent = call(step, index % 4 === 0 ? "client" : "connection");
      // one that is never awaited is looked at in the end
      sent.catch(() => {});
      calls.set(step.id, sent);
    } else if ("generate" in step) {
      readings.set(step.generate.rid, generate(step));
    } else if ("abort" in step) {
      for (const rid of step.abort) await readings.get(rid)?.stream.return();
    } else if ("await" in step) {
      await calls.get(step.await);
    } else if ("awaitTokens" in step) {
      await comes(index, readings.get(step.awaitTokens)?.reaches(step.atLeast), step.withinMs);
    } else if ("awaitFinish" in step) {
      await comes(index, readings.get(step.awaitFinish)?.ended, step.withinMs);
    } else if ("sleepMs" in step) {
      await sleep(step.sleepMs);
    } else if ("forMs" in step) {
      await sleep(step.forMs);
    }
  }
  await sleep(60);
  const replies = [...calls].map(async ([id, sent]) => {
    const recorded = (await sent).map(({ engine, reply }) => [engine, { tag: reply.$tag, fields: wireFields(reply), unfinished: [] }]);
    return [id, Object.fromEntries(recorded)];
  });
  return {
    replies: Object.fromEntries(await Promise.all(replies)),
    requests: Object.fromEntries([...readings].map(([rid, reading]) => [rid, reading.recorded])),
  };
}
