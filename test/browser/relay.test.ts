import { expect, inject, test } from "vitest";
import { decodeIsSleepingReqOutput, encodeIsSleepingReqInput } from "../../src/messages.ts";
import { connect, openLink } from "../../src/web/index.ts";
import { isEngineWireError } from "../../src/wire/errors.ts";
import type {} from "./provided.ts";

const url = inject("relayUrl");
const token = inject("relayToken");

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
