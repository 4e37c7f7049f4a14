// What a page pays for a relay: three operations and the link, without the codecs of the others.
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { expect, it } from "vitest";

const root = new URL("../../", import.meta.url).pathname;

async function gzipped(code: string): Promise<{ readonly bytes: number; readonly text: string }> {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: root, loader: "ts" },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    write: false,
  });
  const text = outputFiles[0]?.text ?? "";
  return { bytes: gzipSync(text, { level: 9 }).length, text };
}

it("a page with three operations has at most 12 KiB", async () => {
  const { bytes, text } = await gzipped(`
    import { openLink } from "./src/web/index.ts";
    import { decodePauseSchedulerReqOutput, encodePauseSchedulerReqInput } from "./src/messages.ts";
    import { decodeResumeSchedulerReqOutput, encodeResumeSchedulerReqInput } from "./src/messages.ts";
    import { decodeIsSleepingReqOutput, encodeIsSleepingReqInput } from "./src/messages.ts";
    const link = await openLink("wss://relay.example/", { token: "t" });
    for (const { engine, reply } of await link.call(encodePauseSchedulerReqInput({ mode: "wait" }))) console.log(engine, decodePauseSchedulerReqOutput(reply));
    for (const { engine, reply } of await link.call(encodeResumeSchedulerReqInput({}))) console.log(engine, decodeResumeSchedulerReqOutput(reply));
    for (const { engine, reply } of await link.call(encodeIsSleepingReqInput({}))) console.log(engine, decodeIsSleepingReqOutput(reply));
  `);
  expect(bytes).toBeLessThanOrEqual(12 * 1024);
  expect(bytes).toBeGreaterThan(6 * 1024);
  for (const unused of ["UpdateWeightsFromDistributed", "is frozen by keep", "node:"]) expect(text).not.toContain(unused);
});

it("the whole client holds every operation, and nothing of Node", async () => {
  const { bytes, text } = await gzipped(`
    import { connect } from "./src/web/index.ts";
    import { createClient } from "./src/index.ts";
    await createClient(await connect("wss://relay.example/")).pauseScheduler({ mode: "wait" });
  `);
  expect(bytes).toBeLessThanOrEqual(36 * 1024);
  expect(text).not.toContain("node:");
});
