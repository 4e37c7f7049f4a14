// A child process that attacks a relay in one way until it is ended. Arguments: the way, and the relay's URL. Prints a line
// of JSON when it is ended: what it tried, and how often the relay closed or refused it.
import { connect } from "node:net";
import WebSocket from "ws";
import { encodeCall, encodeHello, encodePing } from "../../generated/relay/encoders.ts";
import { encodeControlRequest } from "../../src/messages.ts";

const [, , way = "", url = ""] = process.argv;
const { port } = new URL(url);
const hello = (token = "attacker"): Uint8Array => encodeHello({ versions: [1], token });
let tried = 0;
let refused = 0;

process.on("SIGTERM", () => {
  process.stdout.write(`${JSON.stringify({ tried, refused })}\n`, () => process.exit(0));
});

/** Opens connections one after the other, each for `use`, and counts how they end. */
function again(use: (socket: WebSocket) => void, options: WebSocket.ClientOptions = {}, count = 4): void {
  const open = (): void => {
    const socket = new WebSocket(url, ["enginewire.v1"], options);
    socket.on("open", () => use(socket));
    socket.on("error", () => {});
    socket.on("close", () => {
      refused++;
      setTimeout(open, 1);
    });
  };
  for (let index = 0; index < count; index++) open();
}

/** Does something in bursts, with a turn of the event loop between them. */
function bursts(socket: WebSocket, size: number, send: () => void): void {
  const step = (): void => {
    if (socket.readyState !== WebSocket.OPEN) return;
    if (socket.bufferedAmount < 4_000_000) for (let index = 0; index < size; index++, tried++) send();
    setTimeout(step, 1);
  };
  step();
}

const ways: Readonly<Record<string, () => void>> = {
  "malformed messages": () =>
    again((socket) => {
      socket.send(hello());
      bursts(socket, 100, () => socket.send(Uint8Array.from({ length: 40 }, () => Math.floor(Math.random() * 256))));
    }),
  "call flood": () =>
    again((socket) => {
      socket.send(hello());
      let id = 0;
      const request = encodeControlRequest({ $tag: "IsSleepingReqInput" });
      bursts(socket, 50, () => socket.send(encodeCall({ id: id++, request })));
    }),
  "guessed tokens": () =>
    again((socket) => {
      tried++;
      socket.send(hello(`guess ${Math.random()}`));
    }),
  "foreign origins": () => {
    again(() => {}, { origin: "https://evil.example" });
    setInterval(() => {
      tried = refused;
    }, 1);
  },
  "oversized messages": () =>
    again(
      (socket) => {
        tried++;
        socket.send(hello());
        socket.send(new Uint8Array(8_000_000));
      },
      {},
      2,
    ),
  "connections half open": () => {
    const open = (): void => {
      tried++;
      const socket = connect(Number(port), "127.0.0.1", () => socket.write("GET / HT"));
      socket.on("error", () => {});
      socket.on("close", () => refused++);
    };
    setInterval(() => {
      for (let index = 0; index < 20 && tried - refused < 10_000; index++) open();
    }, 5);
  },
  "slow readers": () =>
    again((socket) => {
      socket.send(hello());
      socket.pause();
      bursts(socket, 100, () => socket.send(encodePing({ nonce: 1 })));
    }),
};

ways[way]?.();
