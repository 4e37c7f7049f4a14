// What a page downloads. Three operations of a small page: the link and their codecs, and nothing else.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { type BuildResult, build } from "esbuild";
import { beforeAll, describe, expect, it } from "vitest";
import { type Operation, operations } from "../../generated/tokenspeed/operations.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

const small = `
import { decodeFlushCacheReqOutput, decodePauseSchedulerReqOutput, decodeResumeSchedulerReqOutput } from "./src/messages.ts";
import { encodeFlushCacheReqInput, encodePauseSchedulerReqInput, encodeResumeSchedulerReqInput } from "./src/messages.ts";
import { openLink } from "./src/web/index.ts";
const link = await openLink("wss://relay.example/");
for (const { reply } of await link.call(encodePauseSchedulerReqInput({ mode: "wait" }))) console.log(decodePauseSchedulerReqOutput(reply));
for (const { reply } of await link.call(encodeFlushCacheReqInput({}))) console.log(decodeFlushCacheReqOutput(reply));
for (const { reply } of await link.call(encodeResumeSchedulerReqInput({}))) console.log(decodeResumeSchedulerReqOutput(reply));
`;

const whole = `
import { createClient } from "./src/index.ts";
import { connect } from "./src/web/index.ts";
const client = createClient(await connect("wss://relay.example/"));
console.log(await client.pauseScheduler(), await client.flushCache(), await client.resumeScheduler());
`;

type Bundled = BuildResult<{ write: false; metafile: true }>;

const [, documented = ""] = /^```ts\n(import [^`]*openLink[^`]*)^```$/m.exec(readFileSync(`${root}docs/guide.md`, "utf8")) ?? [];

function bundle(contents: string): Promise<Bundled> {
  return build({
    stdin: { contents, resolveDir: root, loader: "ts" },
    absWorkingDir: root,
    bundle: true,
    minify: true,
    alias: { "enginewire/messages": "./src/messages.ts", "enginewire/web": "./src/web/index.ts" },
    write: false,
    metafile: true,
    format: "esm",
    target: "es2022",
    // fails where a module of Node is imported
    platform: "browser",
    logLevel: "silent",
  });
}

const textOf = ({ outputFiles }: Bundled): string => outputFiles.map(({ text }) => text).join("");
const gzipped = (bundled: Bundled): number => gzipSync(textOf(bundled), { level: 9 }).length;

describe.each([
  ["three operations through openLink", small, 12 * 1024],
  ["the link of the guide", documented, 12 * 1024],
  ["connect and createClient, with every operation and streams", whole, 36 * 1024],
])("a page with %s", (what, source, limit) => {
  let bundled: Bundled;
  beforeAll(async () => {
    bundled = await bundle(source);
  });

  it(`is at most ${limit} bytes, gzipped`, () => {
    console.log(`${what}: ${gzipped(bundled)} bytes of ${limit}, gzipped; ${textOf(bundled).length} minified`);
    expect(gzipped(bundled)).toBeLessThanOrEqual(limit);
  });

  it("has nothing of Node, and no code that is made of text", () => {
    const inputs = Object.keys(bundled.metafile.inputs);
    expect(inputs.filter((path) => !/^(<stdin>$|src\/|generated\/)/.test(path))).toEqual([]);
    expect(inputs.filter((path) => /^src\/(node|testing|relay|cli)\//.test(path))).toEqual([]);
    const imported = Object.values(bundled.metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path));
    expect(imported).toEqual([]);
    // asked for once, as properties that a page has not: the codec writes text faster where they are
    const text = textOf(bundled).replace(/\{process:\w+,Buffer:\w+\}=globalThis/, "");
    expect(text.length).toBeLessThan(textOf(bundled).length);
    const found = (pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([match]) => match);
    expect(found(/\b(Buffer|process|require|__dirname|__filename|setImmediate|node:\w+)\b/g)).toEqual([]);
    expect(found(/\beval\b|\bFunction\s*\(|\bimport\s*\(/g)).toEqual([]);
  });
});

describe("the bundler", () => {
  it("fails where a page would need Node", async () => {
    await expect(bundle('import "./src/node/index.ts";')).rejects.toThrow(/Could not resolve "/);
  });

  it("leaves out the codecs that a small page does not use", async () => {
    const text = textOf(await bundle(small));
    const tags = Object.values<Operation>(operations).map(({ request }) => request);
    const held = tags.filter((tag) => text.includes(tag)).sort();
    expect(held).toEqual(["FlushCacheReqInput", "PauseSchedulerReqInput", "ResumeSchedulerReqInput"]);
    expect(text.includes("TokenizedGenerateReqInput")).toBe(false);
  });
});
