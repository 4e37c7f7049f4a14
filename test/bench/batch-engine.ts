// A child process of the throughput benchmark: an engine on bare zeromq.js that waits for so many requests and then sends
// the same batch so many times, as fast as the socket takes it. Arguments: handshake address, requests, batches.
import { Dealer, Push } from "zeromq";
import { decodeHandshakeInitMessage, encodeControlOutput, encodeEngineCoreReadyResponse, encodeReadyMessage } from "../../src/messages.ts";
import { outputBatch, requestIds } from "./output-batch.ts";

const [handshake = "", requests, batches] = process.argv.slice(2);
const routingId = "\0\0";
const dealer = new Dealer({ routingId, linger: 0 });
dealer.connect(handshake);
await dealer.send(encodeReadyMessage({ status: "HELLO", local: true, headless: true }));
const init = decodeHandshakeInitMessage((await dealer.receive()).at(-1) ?? new Uint8Array());
await dealer.send(encodeReadyMessage({ status: "READY", local: true, headless: true }));
const input = new Dealer({ routingId, linger: 0 });
input.connect(init.addresses.inputs[0] ?? "");
await input.send(encodeEngineCoreReadyResponse({}));
const output = new Push({ linger: -1, sendHighWaterMark: 0 });
output.connect(init.addresses.outputs[0] ?? "");
await input.receive();
await output.send(encodeControlOutput({ $tag: "IsSchedulerPausedReqOutput", isPaused: false }));

const rids = requestIds(Number(requests));
for (const _ of rids) await input.receive();
const batch = Buffer.from(outputBatch(rids));
for (let sent = 1; sent < Number(batches); sent++) await output.send(batch);
await output.send(Buffer.from(outputBatch(rids, "length")));
await input.receive();
