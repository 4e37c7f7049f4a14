import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { generate } from "../../codegen/generate.ts";
import { tokenspeed } from "../../schema/tokenspeed/index.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const entryPoints: Record<string, { types: string }> = JSON.parse(readFileSync(`${root}package.json`, "utf8")).exports;

/** The blocks of a document that are marked to be run, as ```ts run. */
function snippetsOf(document: string): string[] {
  return [...readFileSync(`${root}${document}`, "utf8").matchAll(/^```ts run\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
}

/** Points the imports of the package at its sources. */
function onSources(code: string): string {
  return code.replace(/from "enginewire(\/\w+)?"/g, (_, entry = "") => {
    const types = entryPoints[`.${entry}`]?.types ?? "";
    return `from "${root}${types.replace("./dist/", "").replace(".d.ts", ".ts")}"`;
  });
}

it("docs/codegen.md: the operation it adds is legal and generated", async () => {
  const [, indented = ""] = /^ {3}```ts schema\n([\s\S]*?)^ {3}```$/m.exec(readFileSync(`${root}docs/codegen.md`, "utf8")) ?? [];
  const folder = mkdtempSync(`${root}node_modules/.snippet-`);
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const code = indented.replace(/^ {3}/gm, "").replaceAll('"../dsl.ts"', `"${root}schema/dsl.ts"`);
  writeFileSync(`${folder}/priority.ts`, code.replaceAll('"./base.ts"', `"${root}schema/tokenspeed/base.ts"`));
  const { setPriority } = await import(`${folder}/priority.ts`);
  const extended = { ...tokenspeed, operations: [...tokenspeed.operations, setPriority] };
  const files = await generate([extended], { wire: "enginewire/wire", extension: ".js" });
  expect(files.get("tokenspeed/operations.ts")).toContain('summary: "Change the priority of requests"');
  expect(files.get("tokenspeed/encoders.ts")).toContain("export function encodeSetPriorityReqInput(init: SetPriorityReqInputInit");
  expect(files.get("tokenspeed/replies.ts")).toContain('SetPriorityReqInput: "SetPriorityReqOutput"');
});

describe.each(["README.md", "docs/guide.md"])("%s", (document) => {
  it.each(snippetsOf(document).map((code, index) => [index + 1, code] as const))("snippet %i runs", async (_, code) => {
    const folder = mkdtempSync(`${root}node_modules/.snippet-`);
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(`${folder}/snippet.mts`, onSources(code));
    const { stdout } = await promisify(execFile)(process.execPath, ["--import", "tsx", `${folder}/snippet.mts`], {
      cwd: root,
      timeout: 30_000,
    });
    // a snippet says itself what it prints
    const printed = [...code.matchAll(/^\/\/ prints: (.*)$/gm)].map(([, line = ""]) => `${line}\n`);
    expect(printed).not.toEqual([]);
    expect(stdout).toBe(printed.join(""));
  });

  it("has snippets that run", () => {
    expect(snippetsOf(document)).not.toEqual([]);
  });
});
