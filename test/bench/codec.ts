import { pathToFileURL } from "node:url";
import { Decoder, Encoder } from "@msgpack/msgpack";
import Table from "cli-table3";
import {
  decodeBatchTokenIDOutSlim,
  decodeGetInternalStateReqOutput,
  decodePauseSchedulerReqInput,
  decodeUpdateWeightsFromDistributedReqInput,
  encodeBatchTokenIDOutSlim,
  encodeGetInternalStateReqOutput,
  encodePauseSchedulerReqInput,
  encodeUpdateWeightsFromDistributedReqInput,
} from "../../src/messages.ts";
import { internalState, outputBatch, weights } from "./codec-payloads.ts";
import { contestant, runPaired } from "./paired.ts";

/** One measured line. */
export interface CodecRow {
  readonly payload: string;
  readonly bytes: number;
  readonly direction: "encode" | "decode";
  /** Median microseconds of our codec. */
  readonly microseconds: number;
  /** How many times as fast as a reused Encoder or Decoder of @msgpack/msgpack: median of the rounds' ratios. */
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
  /** The ratio to reach. */
  readonly goal: number;
}

interface Payload {
  readonly name: string;
  /** The positional array that goes on the wire. */
  readonly array: () => unknown[];
  readonly encode: () => Uint8Array;
  readonly decode: (bytes: Uint8Array) => unknown;
  readonly goals: readonly [encode: number, decode: number];
}

function update(count: number, goals: Payload["goals"]): Payload {
  const init = {
    rid: null,
    httpWorkerIpc: null,
    ...weights(count),
    groupName: "weight_update_group",
    flushCache: true,
    weightVersion: null,
  };
  const { rid, httpWorkerIpc, names, dtypeNames, shapes, groupName, flushCache, weightVersion } = init;
  return {
    name: `update-${count}`,
    array: () => [
      "UpdateWeightsFromDistributedReqInput",
      rid,
      httpWorkerIpc,
      names,
      dtypeNames,
      shapes,
      groupName,
      flushCache,
      weightVersion,
    ],
    encode: () => encodeUpdateWeightsFromDistributedReqInput(init),
    decode: decodeUpdateWeightsFromDistributedReqInput,
    goals,
  };
}

function batch(name: string, logprobs: boolean, goals: Payload["goals"]): Payload {
  const init = outputBatch(256, logprobs);
  const values = Object.values(init);
  return {
    name,
    array: () => ["BatchTokenIDOutSlim", ...values],
    encode: () => encodeBatchTokenIDOutSlim(init),
    decode: decodeBatchTokenIDOutSlim,
    goals,
  };
}

function payloads(): Payload[] {
  const pause = { rid: null, httpWorkerIpc: null, mode: "wait" } as const;
  const state = { rid: null, httpWorkerIpc: null, internalState: internalState() };
  return [
    {
      name: "pause",
      array: () => ["PauseSchedulerReqInput", pause.rid, pause.httpWorkerIpc, pause.mode],
      encode: () => encodePauseSchedulerReqInput(pause),
      decode: decodePauseSchedulerReqInput,
      goals: [2.5, 5],
    },
    update(1, [2.8, 3.2]),
    update(100, [4, 4]),
    update(1000, [4.3, 4.3]),
    update(10_000, [3, 4.5]),
    {
      name: "state-40",
      array: () => ["GetInternalStateReqOutput", state.rid, state.httpWorkerIpc, state.internalState],
      encode: () => encodeGetInternalStateReqOutput(state),
      decode: decodeGetInternalStateReqOutput,
      goals: [1.5, 1.5],
    },
    batch("batch-256", false, [4.8, 2.7]),
    batch("batch-256-logprobs", true, [4.2, 2.2]),
  ];
}

/** Measures encoding and decoding (validated, into typed objects) against @msgpack/msgpack, which validates nothing. */
export async function benchCodec({ rounds = 60, sliceMs = 3, only = "" } = {}): Promise<CodecRow[]> {
  const encoder = new Encoder();
  const decoder = new Decoder();
  const cases = payloads()
    .filter(({ name }) => name.startsWith(only))
    .flatMap((payload) => {
      const { name, array, encode, decode, goals } = payload;
      const bytes = encoder.encode(array());
      if (Buffer.compare(encode(), bytes) !== 0) throw new Error(`${name}: other bytes than @msgpack/msgpack`);
      // What a socket hands over in Node.
      const inputs = Array.from({ length: 8 }, () => Buffer.from(bytes));
      let turn = 0;
      const next = (): Uint8Array => inputs[turn++ & 7] as Uint8Array;
      return [
        { name, direction: "encode" as const, size: bytes.length, goal: goals[0], theirs: () => encoder.encode(array()), ours: encode },
        {
          name,
          direction: "decode" as const,
          size: bytes.length,
          goal: goals[1],
          theirs: () => decoder.decode(next()),
          ours: () => decode(next()),
        },
      ];
    });
  // All shapes go through both codecs before anything is timed, as in a real process.
  for (let k = 0; k < 3; k++) {
    for (const { size, theirs, ours } of cases) {
      const times = size > 100_000 ? 30 : size > 5000 ? 300 : 3000;
      for (let i = 0; i < times; i++) {
        theirs();
        ours();
      }
    }
  }
  return cases.map(({ name, direction, size, goal, theirs, ours }) => {
    const [, own] = runPaired([contestant("@msgpack/msgpack", theirs), contestant("enginewire", ours)], rounds, sliceMs);
    if (own === undefined) throw new Error("nothing was measured");
    const { nanoseconds, ratio, low, high } = own;
    return { payload: name, bytes: size, direction, microseconds: nanoseconds / 1000, ratio, low, high, goal };
  });
}

/** The measured lines as a table. */
export function codecTable(rows: readonly CodecRow[]): string {
  const table = new Table({
    head: ["payload", "bytes", "direction", "us", "x @msgpack", "10..90 %", "goal", ""],
    style: { head: [], border: [] },
  });
  for (const { payload, bytes, direction, microseconds, ratio, low, high, goal } of rows) {
    const range = `${low.toFixed(1)}..${high.toFixed(1)}`;
    table.push([payload, bytes, direction, microseconds.toFixed(2), ratio.toFixed(2), range, goal, ratio >= goal ? "ok" : "below"]);
  }
  return table.toString();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  console.log(codecTable(await benchCodec({ only: process.argv[2] ?? "" })));
