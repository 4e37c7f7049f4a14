// Attacks by frames and messages that are wrong.
import { encodeCall, encodeHello, encodePing } from "../../generated/relay/encoders.ts";
import { encodeControlRequest } from "../../src/messages.ts";
import { encodeAny } from "../../src/wire/index.ts";
import { randomOf } from "../faults/random.ts";
import { frame } from "../relay/frame.ts";
import type { Attacker } from "./attacker.ts";
import type { Attack } from "./attacks.ts";
import { tokens } from "./messages.ts";

const hello = frame(2, encodeHello({ versions: [1], token: tokens.reader }));

/** Writes frames on a new connection that was let in. */
async function write(attacker: Attacker, bytes: Uint8Array): Promise<void> {
  attacker.try();
  const socket = await attacker.frames();
  socket.write(hello);
  socket.write(bytes);
}

/** Sends messages on a new connection that was let in. */
async function send(attacker: Attacker, messages: readonly (Uint8Array | string)[]): Promise<void> {
  const socket = await attacker.greet(tokens.reader);
  for (const message of messages) {
    attacker.try();
    socket?.send(message);
  }
}

const nested = (depth: number): Uint8Array => new Uint8Array(depth).fill(0x91);
const bomb = Uint8Array.of(0x94, 0xb3, ...Buffer.from("SetInternalStateReq"), 0xc0, 0xc0, 0x81, 0xa1, 0x61, ...nested(10_000), 0xc0);

/** A hundred million bytes are announced, and the first of them sent. */
const envelope = Buffer.concat([Buffer.of(0x82, 0xff, 0, 0, 0, 0, 0x05, 0xf5, 0xe1, 0, 0, 0, 0, 0), Buffer.alloc(100_000)]);

export const messageAttacks: readonly Attack[] = [
  { name: "text frames", rate: "100 connections/s", run: (attacker) => attacker.pace(100, () => void send(attacker, ["pause"])) },
  {
    name: "envelopes of 100 MB",
    rate: "50 connections/s",
    run: (attacker) => attacker.pace(50, () => void write(attacker, envelope)),
  },
  {
    name: "compressed frames, though nothing was agreed",
    rate: "100 connections/s",
    run: (attacker) => attacker.pace(100, () => void write(attacker, Buffer.of(0xc2, 0x81, 0, 0, 0, 0, 0))),
  },
  {
    name: "nesting bombs",
    rate: "100 connections/s, one in a call and one alone",
    run: (attacker) => attacker.pace(100, () => void send(attacker, [encodeCall({ id: 1, request: bomb }), nested(16_000)])),
  },
  {
    name: "100,000 malformed messages of a fuzzer",
    rate: "5000 messages/s, 50 connections/s",
    longer: 3,
    run: (attacker) => {
      const random = randomOf(11);
      const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
      const seeds = [
        encodePing({ nonce: 1 }),
        encodeHello({ versions: [1] }),
        encodeCall({ id: 3, request: encodeControlRequest({ $tag: "IsSleepingReqInput" }) }),
        encodeAny(["StreamOpen", 1, new Uint8Array(3), [], null, 4]),
      ];
      const wrong = (): Uint8Array => {
        const bytes = Buffer.from(pick(seeds));
        for (let flips = 1 + Math.floor(random() * 4); flips > 0; flips--)
          bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
        return bytes.subarray(0, 1 + Math.floor(random() * bytes.length));
      };
      return attacker.pace(50, () => void send(attacker, Array.from({ length: 100 }, wrong)));
    },
  },
];
