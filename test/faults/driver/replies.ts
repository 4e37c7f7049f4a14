import { randomOf } from "../random.ts";
import type { Manner } from "./orders.ts";
import { type Setting, same, until } from "./setting.ts";

/** Wrong replies that come before the right one, and the count each must raise by one. */
const noted: Partial<Record<Manner, "malformedMessages" | "unexpectedReplies" | "unknownTags">> = {
  twice: "unexpectedReplies",
  "truncated first": "malformedMessages",
  "oversized first": "malformedMessages",
  "with trailing bytes first": "malformedMessages",
  "with a wrong tag first": "unexpectedReplies",
  "with an unknown tag first": "unknownTags",
  "with two frames first": "malformedMessages",
  "with an empty frame first": "malformedMessages",
  "with half a sentinel first": "malformedMessages",
};

/** Three engines that answer wrongly in every way, at the same time, in random order; then each ends. */
export async function wrongReplies(setting: Setting): Promise<void> {
  const client = await setting.connect(setting.host(), 3);
  const expected = {
    lateReplies: 0,
    lostReplies: 0,
    unexpectedReplies: 0,
    unknownTags: 0,
    malformedMessages: 0,
    unexpectedMessages: 0,
    unexpectedOutputs: 0,
  };
  const { connection } = client;

  async function round(engine: number, manner: Manner): Promise<void> {
    const count = noted[manner];
    const ask = (answer: Manner) => setting.ask(client, engine, { id: setting.id(), answer });
    setting.inject();
    if (manner === "after another kind") {
      const [first, second] = [ask(manner), client.isSleeping({}, { engines: [engine] })];
      same("the overtaking reply", await setting.count(second, ([reply]) => reply?.engine === engine), "ok");
      same("the overtaken reply", await first, "ok");
      return;
    }
    same(manner, await ask(manner), "ok");
    if (count === undefined) return;
    expected[count]++;
    // nothing tells a second reply from the reply to the next call of its kind, so that call must not be out yet
    if (manner === "twice") await until("the second reply was noted", () => connection.counts.unexpectedReplies >= expected[count]);
  }

  const manners: Manner[] = ["after another kind", ...(Object.keys(noted) as Manner[])];
  const random = randomOf(20_260_822);
  for (let turn = 0; turn < 60; turn++) {
    const picks = connection.engines.map(({ index }) => [index, manners[Math.floor(random() * manners.length)] ?? "twice"] as const);
    await Promise.all(picks.map(([engine, manner]) => round(engine, manner)));
  }
  same("the counts", connection.counts, expected);
  await missing(setting, client);
  await aborted(setting, client);
  await sentinels(setting, client);
}

type Client = Awaited<ReturnType<Setting["connect"]>>;

/** Replies that never come: the call ends at its deadline and two queries prove the loss. */
async function missing(setting: Setting, client: Client): Promise<void> {
  for (let turn = 0; turn < 20; turn++) {
    setting.inject();
    const engine = turn % 3;
    same("a missing reply", await setting.ask(client, engine, { id: setting.id(), answer: "never" }, { timeoutMs: 20 }), "timeout");
    const next = setting.ask(client, engine, { id: setting.id(), answer: "plainly" });
    for (let query = 0; query < 2; query++)
      await setting.count(client.isSleeping({}, { engines: [engine] }), ([reply]) => reply?.engine === engine);
    same("the call behind it", await next, "ok");
  }
  same("losses", client.connection.counts.lostReplies, 20);
}

/** Late replies to calls that were aborted: swallowed, and the next call gets its own. */
async function aborted(setting: Setting, client: Client): Promise<void> {
  let given = 0;
  for (let turn = 0; turn < 60; turn++) {
    setting.inject();
    const engine = turn % 3;
    const controller = new AbortController();
    const late = setting.ask(client, engine, { id: setting.id(), answer: "late", amount: turn % 7 }, { signal: controller.signal });
    setTimeout(() => controller.abort(), turn % 5);
    const next = setting.ask(client, engine, { id: setting.id(), answer: "plainly" });
    const ending = await late;
    if (ending === "aborted") given++;
    else same("a call that is aborted too late", ending, "ok");
    same("the call after it", await next, "ok");
  }
  same("late replies", client.connection.counts.lateReplies, given);
}

/** An engine's end in the middle of a call, with others waiting behind it; the other engines go on. */
async function sentinels(setting: Setting, client: Client): Promise<void> {
  for (const engine of [2, 1]) {
    setting.inject();
    const calls = ["with its end", "plainly", "plainly"] as const;
    const endings = await Promise.all(calls.map((answer) => setting.ask(client, engine, { id: setting.id(), answer })));
    same("calls of an engine that ends", endings, ["engine_dead", "engine_dead", "engine_dead"]);
    same("a call after that", await setting.ask(client, engine, { id: setting.id(), answer: "plainly" }), "engine_dead");
    same("a call of another engine", await setting.ask(client, 0, { id: setting.id(), answer: "plainly" }), "ok");
  }
}
