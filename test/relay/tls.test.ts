// TLS with a certificate made for these tests alone (CN=localhost, valid for a hundred years); its key guards nothing.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import WebSocket from "ws";
import { createClient } from "../../src/index.ts";
import { serve } from "../../src/relay/index.ts";
import { connect } from "../../src/web/index.ts";
import { connectSimulated } from "../contract/simulated-group.ts";
import { failureOf } from "../faults/scripted-group.ts";

const file = (name: string): Buffer => readFileSync(new URL(`certificate/${name}.pem`, import.meta.url));
const tls = { cert: file("certificate"), key: file("key") };

/** A WebSocket that trusts the certificate of these tests. */
class Trusting extends WebSocket {
  constructor(url: string, protocols: string[]) {
    super(url, protocols, { ca: tls.cert });
  }
}

it("serves over TLS to those who trust its certificate, and nobody else", async () => {
  const { client: near } = await connectSimulated({ ranks: 2 });
  await using relay = await serve(near.connection, { port: 0, tls });
  expect(relay.url).toMatch(/^wss:\/\/127\.0\.0\.1:\d+\/$/);
  await using client = createClient(await connect(relay.url, { WebSocket: Trusting }));
  expect(await client.isSleeping()).toHaveLength(2);
  expect(await failureOf(connect(relay.url, { WebSocket }))).toMatchObject({ code: "unreachable" });
  expect(await failureOf(connect(relay.url.replace("wss:", "ws:"), { WebSocket }))).toMatchObject({ code: "unreachable" });
  // those that failed have cost nothing
  await expect.poll(() => relay.clients).toBe(1);
});
