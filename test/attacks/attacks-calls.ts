// Attacks of whoever has a token, which allows less than is tried, or is used more than it should be.

import type WebSocket from "ws";
import { encodeCall, encodeHello, encodePing, encodeStreamOpen } from "../../generated/relay/encoders.ts";
import { type ControlRequestInit, encodeControlRequest, encodeTokenizedGenerateReqInput } from "../../src/messages.ts";
import { encodeAny } from "../../src/wire/index.ts";
import { frame } from "../relay/frame.ts";
import type { Attacker } from "./attacker.ts";
import type { Attack } from "./attacks.ts";
import { attackersStreams, tokens } from "./messages.ts";

/** Sends messages over some connections, at a rate in all; one that is closed is opened again. */
async function flood(
  attacker: Attacker,
  token: string,
  connections: number,
  perSecond: number,
  message: (id: number) => Uint8Array,
): Promise<void> {
  const open: (WebSocket | undefined)[] = [];
  let id = 0;
  await attacker.pace(perSecond, () => {
    const place = id % connections;
    const socket = open[place];
    id++;
    if (socket === undefined || socket.readyState === socket.CLOSED) {
      if (place in open && socket === undefined) return;
      open[place] = undefined;
      void attacker.greet(token).then((opened) => {
        if (opened === undefined) delete open[place];
        else open[place] = opened;
      });
    } else if (socket.bufferedAmount < 1_000_000) {
      attacker.try();
      socket.send(message(id));
    }
  });
}

/** Calls of one of the client's engines. */
const call = (request: ControlRequestInit) => {
  const bytes = encodeControlRequest(request);
  return (id: number) => encodeCall({ id, request: bytes, engines: [0] });
};

const [generate] = encodeTokenizedGenerateReqInput({ inputIds: [1, 2, 3], stream: true, samplingParams: { maxNewTokens: 1000 } } as never);
const stream = (id: number) => encodeStreamOpen({ id, request: generate, tensors: [], engine: attackersStreams, credit: 0 });

export const callAttacks: readonly Attack[] = [
  {
    name: "calls of the client's own kind",
    rate: "2500/s, 8 connections",
    run: (attacker) => flood(attacker, tokens.reader, 8, 2500, call({ $tag: "IsSchedulerPausedReqInput" })),
  },
  {
    name: "messages beyond the rate",
    rate: "12,000/s, one connection",
    longer: 3,
    run: (attacker) => flood(attacker, tokens.reader, 1, 12_000, (nonce) => encodePing({ nonce })),
  },
  {
    name: "unknown operations",
    rate: "500/s, 4 connections",
    run: (attacker) => flood(attacker, tokens.reader, 4, 500, (id) => encodeCall({ id, request: encodeAny([`Operation${id}`, null]) })),
  },
  {
    name: "an operation that the token does not allow",
    rate: "500/s, 4 connections",
    run: (attacker) => flood(attacker, tokens.reader, 4, 500, call({ $tag: "PauseSchedulerReqInput" })),
  },
  {
    name: "slow readers",
    rate: "2 connections, 6000 calls/s each, never read",
    longer: 2,
    run: async (attacker) => {
      // what is wrong with it is explained, so each brings more bytes than it has
      const wrong = encodeAny(["Wrong", null]);
      const burst = Buffer.concat(Array.from({ length: 600 }, (_, id) => frame(2, encodeCall({ id, request: wrong }))));
      const readers = Array.from({ length: 2 }, async () => {
        const socket = await attacker.frames();
        socket.write(frame(2, encodeHello({ versions: [1], token: tokens.reader })));
        socket.pause();
        while (!attacker.stopped && !socket.destroyed) {
          if (socket.writableLength < 1_000_000) {
            socket.write(burst);
            attacker.try(600);
          }
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      });
      await Promise.all(readers);
    },
  },
  {
    name: "streams that are opened and never read",
    rate: "200/s, 4 connections, no credit",
    run: (attacker) => flood(attacker, tokens.attacker, 4, 200, stream),
  },
  {
    name: "clients that vanish in the middle of calls and streams",
    rate: "30 clients/s, 10 calls and 5 streams each",
    run: (attacker) =>
      attacker.pace(30, async () => {
        const socket = await attacker.greet(tokens.attacker);
        if (socket === undefined) return;
        attacker.try();
        for (let id = 1; id <= 10; id++) socket.send(call({ $tag: "FlushCacheReqInput" })(id));
        for (let id = 11; id <= 15; id++) socket.send(stream(id));
        setImmediate(() => attacker.leave(socket));
      }),
  },
];
