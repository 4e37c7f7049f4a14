// The client that behaves well: calls its two engines in turn, of which one is paused and the other is not, so that every
// answer tells whose it is; reads a stream whose tokens are known; and measures both. argv: the relay's URL.
import WebSocket from "ws";
import { createClient } from "../../src/index.ts";
import { tokenOf } from "../../src/testing/index.ts";
import { connect } from "../../src/web/index.ts";
import { type ClientReport, clientsStream, tokens } from "./messages.ts";

const [, , url = ""] = process.argv;
const connection = await connect(url, { WebSocket, token: tokens.client, client: "the good client" });
const client = createClient(connection);
await client.pauseScheduler({ mode: "keep" }, { engines: [1] });

let calls: number[] = [];
let gaps: number[] = [];
let mistakes: string[] = [];

async function call(): Promise<void> {
  for (let round = 0; ; round++) {
    const asked = round % 2;
    const start = performance.now();
    try {
      const [answer] = await client.isSchedulerPaused({}, { engines: [asked], timeoutMs: 10_000 });
      calls.push(performance.now() - start);
      if (answer?.engine !== asked || answer.reply.isPaused !== (asked === 1)) mistakes.push(`engine ${asked}: ${JSON.stringify(answer)}`);
    } catch (error) {
      mistakes.push(String(error));
    }
    // below what one client may
    await new Promise((resolve) => setTimeout(resolve, 6));
  }
}

async function read(): Promise<void> {
  for (;;) {
    let position = 0;
    let last = performance.now();
    try {
      for await (const { outputIds } of connection.generate(
        { inputIds: [1], samplingParams: { maxNewTokens: 2000 } },
        { engine: clientsStream },
      )) {
        for (const id of outputIds) if (id !== tokenOf(0, position++)) mistakes.push(`token ${id} at ${position - 1}`);
        const now = performance.now();
        gaps.push(now - last);
        last = now;
      }
      if (position !== 2000) mistakes.push(`a stream of ${position} tokens`);
    } catch (error) {
      mistakes.push(`stream: ${error}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

process.on("message", () => {
  process.send?.({ calls, gaps, mistakes } satisfies ClientReport);
  calls = [];
  gaps = [];
  mistakes = [];
});
process.on("disconnect", () => process.exit(0));
void call();
void read();
process.send?.({ ready: true });
