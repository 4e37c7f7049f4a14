import { expect, inject, test } from "vitest";
import { page } from "vitest/browser";
import { createClient } from "../../src/index.ts";
import { decodeIsSleepingReqOutput, encodeIsSleepingReqInput } from "../../src/messages.ts";
import { connect, openLink } from "../../src/web/index.ts";
import { isEngineWireError } from "../../src/wire/errors.ts";
import type {} from "./provided.ts";

const url = inject("relayUrl");
const token = inject("relayToken");

test("a page runs a reinforcement-learning step through a relay", async () => {
  const connection = await connect(url, { token, client: "a page" });
  const client = createClient(connection);
  expect(connection.engines.map(({ index }) => index)).toEqual([0, 1]);
  expect(connection.identity).toBe(`page at ${location.origin}`);
  const list = document.body.appendChild(document.createElement("ul"));
  const step = async (name: string, replies: Promise<readonly { readonly engine: number; readonly reply: object }[]>): Promise<void> => {
    for (const { engine, reply } of await replies) {
      const item = list.appendChild(document.createElement("li"));
      item.textContent = `${name}: engine ${engine} ${JSON.stringify(reply)}`;
    }
  };
  await step("pause", client.pauseScheduler({ mode: "wait" }));
  await step("join", client.initWeightsUpdateGroup({ masterAddress: "127.0.0.1", masterPort: 29_500, rankOffset: 1, worldSize: 3 }));
  const bucket = { names: ["w"], dtypeNames: ["bfloat16"], shapes: [[4]], weightVersion: "step-1" };
  await step("update", client.updateWeightsFromDistributed(bucket));
  await step("flush", client.flushCache());
  await step("resume", client.resumeScheduler());
  expect(list.children).toHaveLength(10);
  expect(list.textContent?.match(/"success":true/g)).toHaveLength(10);
  expect((await client.state()).engines.map(({ scheduler }) => scheduler)).toEqual(["running", "running"]);
  await page.screenshot({ path: "screenshots/relay-step.png" });
  await connection.close();
});

test("a Web Worker asks engines through a relay", async () => {
  const worker = new Worker(new URL("./relay-worker.ts", import.meta.url), { type: "module" });
  const told = new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data);
  });
  worker.postMessage({ url, token });
  expect(await told).toEqual([
    [0, false],
    [1, false],
  ]);
  worker.terminate();
});

test("a small page needs no more than the codecs it uses", async () => {
  const link = await openLink(url, { token });
  const replies = await link.call(encodeIsSleepingReqInput({}));
  expect(replies.map(({ reply }) => decodeIsSleepingReqOutput(reply).isSleeping)).toEqual([false, false]);
  await link.close();
});

test.each([
  ["another token", url, "wrong", "unauthenticated"],
  ["nobody there", "ws://127.0.0.1:1/", token, "unreachable"],
  ["another path of the server", `${url}other`, token, "forbidden"],
])("%s is told as such", async (_, address, credential, code) => {
  const failure = await connect(address, { token: credential }).catch((error: unknown) => error);
  expect(isEngineWireError(failure) ? failure.code : failure).toBe(code);
});
