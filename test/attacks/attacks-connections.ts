// Attacks of whoever can connect: none of them has a token that counts.
import { encodeHello } from "../../generated/relay/encoders.ts";
import { frame } from "../relay/frame.ts";
import type { Attacker } from "./attacker.ts";
import type { Attack } from "./attacks.ts";
import { tokens } from "./messages.ts";

const requests: readonly (readonly string[])[] = [
  ["GET / HTTP/1.1", "Host: 127.0.0.1"],
  ["POST / HTTP/1.1", "Host: 127.0.0.1", "Content-Length: 10"],
  ["GET /etc/passwd HTTP/1.1", "Host: 127.0.0.1"],
  ["GET /metrics HTTP/1.1", "Host: 127.0.0.1", "Authorization: Bearer guess"],
  ["\u0016\u0003\u0001garbage"],
];

const pages = [
  { headers: { Host: "evil.example" } },
  { origin: "http://evil.example" },
  { origin: "null" },
  { headers: { Host: "evil.example" }, origin: "http://evil.example" },
];

/** Says hello with a token that counts for nothing. */
function guess(attacker: Attacker, token: string): void {
  attacker.try();
  void attacker.greet(token);
}

/** Keeps so many connections, each refilled when it ends. */
async function keep(attacker: Attacker, count: number, perSecond: number, open: () => Promise<unknown>): Promise<void> {
  let opening = 0;
  await attacker.pace(perSecond, () => {
    if (opening >= count) return;
    opening++;
    void open().finally(() => opening--);
  });
}

export const connectionAttacks: readonly Attack[] = [
  {
    name: "requests that are no WebSocket",
    rate: "400 requests/s",
    run: (attacker) => {
      let index = 0;
      return attacker.pace(400, () => attacker.http(requests[index++ % requests.length] as readonly string[]));
    },
  },
  {
    name: "10,000 connections half open",
    rate: "1000/s, 240 at a time",
    longer: 2,
    run: (attacker) => {
      const open: ReturnType<Attacker["tcp"]>[] = [];
      return attacker.pace(1000, () => {
        attacker.try();
        const socket = attacker.tcp();
        socket.on("close", () => !attacker.stopped && attacker.refuse("closed"));
        socket.write("GET / HTTP/1.1\r\nHost: 127");
        open.push(socket);
        if (open.length > 240) attacker.leave(open.shift() as (typeof open)[0]);
      });
    },
  },
  {
    name: "more connections than an address may have",
    rate: "400/s, none closed",
    run: (attacker) =>
      attacker.pace(400, () => {
        attacker.try();
        const socket = attacker.tcp();
        socket.write("GET / HTTP/1.1\r\nHost: 127");
        socket.on("close", () => !attacker.stopped && attacker.refuse("closed"));
      }),
  },
  {
    name: "wrong Origin and Host",
    rate: "200 connections/s",
    run: (attacker) => {
      let index = 0;
      return attacker.pace(200, () => {
        attacker.try();
        attacker.socket(pages[index++ % pages.length]);
      });
    },
  },
  {
    name: "wrong, expired and replayed tokens",
    rate: "100 connections/s",
    run: (attacker) => {
      let index = 0;
      const all = ["guess", tokens.expired, attacker.once, "", attacker.once.replace(/.$/, "x")];
      return attacker.pace(100, () => guess(attacker, all[index++ % all.length] as string));
    },
  },
  {
    name: "one byte at a time, and fragments of one byte",
    rate: "2000 packets/s, 20 connections",
    run: (attacker) => {
      const hello = encodeHello({ versions: [1], token: "guess" });
      const fragments = [...hello].map((byte, index) => frame(index === 0 ? 2 : 0, Uint8Array.of(byte), index === hello.length - 1));
      return keep(attacker, 20, 100, async () => {
        const socket = await attacker.frames();
        attacker.try();
        for (const byte of Buffer.concat([frame(9, new Uint8Array(1)), ...fragments])) {
          if (attacker.stopped || socket.destroyed) return;
          socket.write(Buffer.of(byte));
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
      });
    },
  },
  {
    name: "pings of the protocol, never read",
    rate: "20,000/s, 10 connections",
    run: (attacker) => {
      const burst = Buffer.concat(Array.from({ length: 200 }, () => frame(9, new Uint8Array(125))));
      return keep(attacker, 10, 100, async () => {
        const socket = await attacker.frames();
        socket.pause();
        while (!attacker.stopped && !socket.destroyed) {
          if (socket.writableLength < 100_000) {
            socket.write(burst);
            attacker.try(200);
          }
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      });
    },
  },
];
