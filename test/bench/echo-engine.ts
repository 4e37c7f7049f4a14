// A child process of the round-trip benchmark: engines on bare zeromq.js that answer every request with fixed bytes at
// once. Arguments: the handshake address, how many engines, then TAG=HEX pairs, the reply to each request tag.
import { Dealer, Push } from "zeromq";
import { decodeHandshakeInitMessage, encodeEngineCoreReadyResponse, encodeReadyMessage, peekTag } from "../../src/messages.ts";

const replies = new Map(
  process.argv
    .slice(4)
    .map((pair) => pair.split("=", 2) as [string, string])
    .map(([tag, hex]) => [tag, Buffer.from(hex, "hex")]),
);
const handshake = process.argv[2] ?? "";

async function run(index: number): Promise<void> {
  const routingId = String.fromCharCode(index, 0);
  const dealer = new Dealer({ routingId, linger: 0 });
  dealer.connect(handshake);
  await dealer.send(encodeReadyMessage({ status: "HELLO", local: true, headless: true }));
  const init = decodeHandshakeInitMessage((await dealer.receive()).at(-1) ?? new Uint8Array());
  await dealer.send(encodeReadyMessage({ status: "READY", local: true, headless: true }));
  const input = new Dealer({ routingId, linger: 0 });
  input.connect(init.addresses.inputs[0] ?? "");
  await input.send(encodeEngineCoreReadyResponse({}));
  const output = new Push({ linger: 0 });
  output.connect(init.addresses.outputs[0] ?? "");
  for (;;) {
    const [, payload] = await input.receive();
    await output.send(replies.get(peekTag(payload ?? new Uint8Array()) ?? "") ?? "");
  }
}

await Promise.all(Array.from({ length: Number(process.argv[3]) }, (_, index) => run(index)));
