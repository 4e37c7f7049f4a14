import { describe, expect, test } from "vitest";
import { type EngineReply, operations } from "../../src/index.ts";
import { type ControlRequestInit, encodeControlRequest } from "../../src/messages.ts";
import { comparable } from "../contract/engine-replay.ts";
import { type Observed, type Script, type Step, scripts } from "../contract/engine-scripts.ts";
import { codeOf } from "./error-code.ts";
import { realEngine, realGroup } from "./real-group.ts";
import { structs, wireFields } from "./schema-structs.ts";

const operationOf = (op: string) =>
  Object.values(operations).find(({ request }) => request.replace(/Req(Input)?$/, "") === op) ?? expect.unreachable(op);

/** What a script's `send` fills in where the wire has no default. */
const filledIn: Readonly<Record<string, unknown>> = { flush_cache: true, load_format: null, weight_version: null };

function requestOf({ op, fields = {} }: { readonly op: string; readonly fields?: Readonly<Record<string, unknown>> }): ControlRequestInit {
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
  if (script.topics.includes("malformed")) return "it sends what is not a message";
  if (script.topics.includes("order")) return "it is about the order of replies on the wire";
  for (const step of script.steps) {
    if ("send" in step) {
      const { reply, answers } = operationOf(step.send.op);
      const to = enginesOf(script, step.to);
      if (answers === "gated" && to.length < script.ranks) return "a gated operation goes to some engines only";
      if (codeOf(() => encodeControlRequest(requestOf(step.send))) !== undefined) return "our encoder refuses a request";
      const lanes = to.map((engine) => `${engine} ${reply}`);
      if (lanes.some((lane) => out.has(lane))) return "two operations of a kind are out at one engine";
      for (const lane of lanes) out.add(lane);
      sentAs.set(step.id, lanes);
    } else if ("await" in step) {
      for (const lane of sentAs.get(step.await) ?? []) out.delete(lane);
    } else if (!("sleepMs" in step)) {
      return `it has a step other than sending and waiting: ${Object.keys(step)[0]}`;
    }
  }
  return undefined;
}

/** How many scripts each rule leaves out: one that is no longer played must not go unnoticed. */
const leftOut = {
  "it has a step other than sending and waiting: generate": 43,
  "it has a step other than sending and waiting: abort": 1,
  "a gated operation goes to some engines only": 7,
  "it sends what is not a message": 3,
  "it is about the order of replies on the wire": 2,
  "our encoder refuses a request": 2,
};

const verdicts = scripts.map((script) => ({ script, because: leftOutBecause(script) }));
const played = verdicts.filter(({ because }) => because === undefined).map(({ script }) => script);

/** Plays a script with our client and returns the replies as the recorder writes them. */
async function play(script: Script): Promise<Observed["replies"]> {
  const { client } = await realGroup(script.ranks, script.flags);
  const calls = new Map<string, Promise<readonly EngineReply[]>>();
  const call = async (step: Extract<Step, { readonly send: object }>, through: "client" | "connection") => {
    const engines = [...enginesOf(script, step.to)];
    const addressed = engines.length === script.ranks ? {} : { engines };
    const request = requestOf(step.send);
    return through === "client" ? client.control(request, { guard: false, ...addressed }) : client.connection.call(request, addressed);
  };
  for (const [index, step] of script.steps.entries()) {
    if ("send" in step) {
      const sent = call(step, index % 4 === 0 ? "client" : "connection");
      // one that is never awaited is looked at in the end
      sent.catch(() => {});
      calls.set(step.id, sent);
    } else if ("await" in step) {
      await calls.get(step.await);
    } else if ("sleepMs" in step) {
      await new Promise((resolve) => setTimeout(resolve, step.sleepMs));
    }
  }
  const replies = [...calls].map(async ([id, sent]) => {
    const recorded = (await sent).map(({ engine, reply }) => [engine, { tag: reply.$tag, fields: wireFields(reply), unfinished: [] }]);
    return [id, Object.fromEntries(recorded)];
  });
  return Object.fromEntries(await Promise.all(replies));
}

describe.skipIf(realEngine === undefined)("our client plays recorded scripts with the real engine", () => {
  test.each(played.map((script) => [script.name, script] as const))("%s", async (_, script) => {
    const observed = { ...script.observed, replies: await play(script) };
    expect(comparable(observed, script.observed)).toEqual(comparable(script.observed, script.observed));
  });

  test("every script is played or left out by a rule", () => {
    const reasons = new Map<string, number>();
    for (const { because } of verdicts) if (because !== undefined) reasons.set(because, (reasons.get(because) ?? 0) + 1);
    console.log(
      `real engine: ${played.length} of ${scripts.length} scripts played; left out: ${JSON.stringify(Object.fromEntries(reasons))}`,
    );
    expect([played.length, scripts.length]).toEqual([26, 84]);
    expect(Object.fromEntries(reasons)).toEqual(leftOut);
    const met = new Set(played.flatMap(({ steps }) => steps.flatMap((step) => ("send" in step ? [operationOf(step.send.op).name] : []))));
    expect(met.size).toBe(17);
  });
});
