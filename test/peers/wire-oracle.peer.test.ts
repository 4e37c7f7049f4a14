import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as messages from "../../src/messages.ts";
import { encodeStruct } from "../vectors/message.ts";
import { toHex } from "../vectors/notation.ts";
import { peerBinary } from "./binaries.ts";
import { LineService } from "./line-service.ts";
import { oracleView } from "./oracle-view.ts";
import { structSamples } from "./samples.ts";
import { structs } from "./schema-structs.ts";

const oracle = peerBinary("wire-oracle");

const seed = Number(process.env.ENGINEWIRE_SEED ?? Date.now() % 2 ** 31);
const perStruct = 60;

/** The oracle's commands for a message, with what each says the message is. */
function commands(name: string, hex: string): readonly string[] {
  if (/Req(Input)?$/.test(name)) return [`decode-request 02,${hex}`, `decode-control ${hex}`];
  if (name.endsWith("ReqOutput")) return [`decode-output ${hex}`, `decode-reply ${hex}`];
  if (name === "ReadyMessage") return [`decode-status ${hex}`];
  return [name === "EngineCoreReadyResponse" ? `decode-ready ${hex}` : `decode-init ${hex}`];
}

/** The message itself in an answer: the sockets' decoders say in which of their messages it came. */
function messageIn(value: unknown): unknown {
  const { type, value: inner } = value as { readonly type?: string; readonly value?: unknown };
  return type === "control" || type === "reply" ? inner : value;
}

describe.skipIf(oracle === undefined)("every message against the Rust wire crate", () => {
  let service: LineService;
  let compared = 0;
  beforeAll(() => {
    console.log(`wire-oracle: seed ${seed} (ENGINEWIRE_SEED repeats it)`);
    service = new LineService(oracle ?? "", []);
  });
  afterAll(async () => {
    await service.stop();
    console.log(`wire-oracle: ${compared} messages`);
  });

  // the addresses travel inside INIT only
  const names = [...structs.keys()].filter((name) => name !== "HandshakeAddresses");

  test.each(names)("%s: the crate decodes what we encode to what was given, and encodes it to the same bytes", async (name) => {
    const numRuns = name === "HandshakeInitMessage" ? 2 * perStruct : perStruct;
    const wrong: string[] = [];
    for (const { give, see } of fc.sample(structSamples(name), { seed, numRuns })) {
      const hex = toHex(encodeStruct(messages, name, give));
      for (const command of commands(name, hex)) {
        const answer = JSON.parse(await service.ask(command));
        if (!answer.ok) wrong.push(`${command}: ${answer.error}`);
        else if (answer.frames.at(-1) !== hex || !answer.same) wrong.push(`${command} comes back as ${answer.frames}`);
        else if (!isDeepStrictEqual(messageIn(answer.value), oracleView({ kind: "struct", name }, see)))
          wrong.push(`${command} is ${JSON.stringify(answer.value)}`);
      }
      compared += 1;
    }
    expect(wrong.slice(0, 3)).toEqual([]);
  });

  test("the death sentinel is the crate's", async () => {
    expect(JSON.parse(await service.ask('encode-output {"op":"dead"}')).frames).toEqual([Buffer.from("ENGINE_CORE_DEAD").toString("hex")]);
  });

  test("the crate's operations are the schema's", async () => {
    const { value } = JSON.parse(await service.ask("operations"));
    const ours = [...structs.keys()].filter((name) => /Req(Input)?$/.test(name)).map((name) => name.replace(/Req(Input)?$/, ""));
    expect([...value].sort()).toEqual(ours.sort());
  });

  test("at least 2,000 messages were compared", () => {
    expect(compared).toBeGreaterThanOrEqual(2000);
  });
});
