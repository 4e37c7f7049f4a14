import { execFile } from "node:child_process";
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { describeDrift, findDrift, writeFiles } from "../../codegen/drift.ts";
import { generate } from "../../codegen/generate.ts";
import { tokenspeed } from "../../schema/tokenspeed/index.ts";

const run = promisify(execFile);
const folders: string[] = [];
const published = { wire: "enginewire/wire", extension: ".js" } as const;

afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))));

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "enginewire-codegen-"));
  folders.push(folder);
  return folder;
}

/** A folder with the code generated from TokenSpeed's schema. */
async function generatedFolder(): Promise<{
  readonly folder: string;
  readonly files: Map<string, string>;
  readonly file: (name: string) => string;
}> {
  const folder = await temporaryFolder();
  const files = await generate([tokenspeed], published);
  await writeFiles(folder, files);
  return { folder, files, file: (name) => join(folder, "tokenspeed", name) };
}

/** Runs the command as a user would and returns what it printed and its exit code. */
async function codegen(...args: string[]): Promise<{ readonly code: number; readonly output: string }> {
  try {
    const { stdout, stderr } = await run(process.execPath, ["--import", "tsx", "codegen/main.ts", ...args], {
      cwd: join(import.meta.dirname, "../.."),
    });
    return { code: 0, output: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, output: stdout + stderr };
  }
}

async function textsOf(folder: string): Promise<string[]> {
  const names = (await readdir(folder)).sort();
  return Promise.all(names.map(async (name) => `${name}\n${await readFile(join(folder, name), "utf8")}`));
}

test("the committed code is what the schema says", async () => {
  expect(await codegen("check")).toEqual({ code: 0, output: "6 files are as the schema says\n" });
});

test("the command writes the same bytes into any folder, and check passes there", async () => {
  const { folder } = await generatedFolder();
  const other = join(await temporaryFolder(), "deep/inside");
  expect((await codegen("generate", "--out", other)).output).toContain("6 files, 6 changed\n");
  expect(await textsOf(join(other, "tokenspeed"))).toEqual(await textsOf(join(folder, "tokenspeed")));
  expect((await codegen("generate", "--out", other)).output).toBe("6 files, none changed\n");
});

test("the command fails where code was changed, and says what to run", async () => {
  const { folder, file } = await generatedFolder();
  await rm(file("replies.ts"));
  const { code, output } = await codegen("check", "--out", folder);
  expect(code).toBe(1);
  expect(output).toMatch(
    /^missing: tokenspeed\/replies\.ts\n\nGenerated code is not .*; run: npx tsx codegen\/main\.ts generate --out .+\n$/,
  );
});

test("an unknown extension is refused", async () => {
  const { code, output } = await codegen("generate", "--extension", ".mjs", "--out", await temporaryFolder());
  expect({ code, output }).toEqual({ code: 1, output: "--extension must be .ts or .js\n" });
});

test("changed, missing and extra files are named with the first lines that differ", async () => {
  const { folder, files, file } = await generatedFolder();
  const types = await readFile(file("types.ts"), "utf8");
  const number = types.split("\n").findIndex((line) => line.startsWith("export interface PauseSchedulerReqInput ")) + 1;
  await writeFile(file("types.ts"), types.replace("interface PauseSchedulerReqInput {", "interface PauseSchedulerReqInput { extra: 1;"));
  await rm(file("replies.ts"));
  await writeFile(file("stale.ts"), "export {};\n");
  await mkdir(join(folder, "gone"));
  await writeFile(join(folder, "gone/types.ts"), "export {};\n");
  expect(describeDrift(await findDrift(folder, files))).toBe(`extra: gone/types.ts
missing: tokenspeed/replies.ts
extra: tokenspeed/stale.ts
changed: tokenspeed/types.ts
  line ${number}
  - export interface PauseSchedulerReqInput { extra: 1;
  + export interface PauseSchedulerReqInput {`);
});

test("a line added at the end is a change", async () => {
  const { folder, files, file } = await generatedFolder();
  const lines = files.get("tokenspeed/zod.ts")?.split("\n").length ?? 0;
  await appendFile(file("zod.ts"), "// more\n");
  expect(await findDrift(folder, files)).toEqual([
    { file: "tokenspeed/zod.ts", kind: "changed", line: { number: lines, onDisk: "// more", generated: "" } },
  ]);
});

test("line ends of a checkout on Windows are no change", async () => {
  const { folder, files, file } = await generatedFolder();
  const text = await readFile(file("types.ts"), "utf8");
  expect(text).not.toContain("\r");
  await writeFile(file("types.ts"), text.replaceAll("\n", "\r\n"));
  expect(await findDrift(folder, files)).toEqual([]);
});

test("generating removes files that were generated once and leaves others alone", async () => {
  const { folder, files, file } = await generatedFolder();
  await writeFile(file("old.ts"), "// Generated by enginewire-codegen from schema/old\n");
  await writeFile(file("mine.ts"), "export {};\n");
  expect(await writeFiles(folder, files)).toEqual(["tokenspeed/old.ts"]);
  expect((await readdir(join(folder, "tokenspeed"))).sort()).toEqual([
    "decoders.ts",
    "encoders.ts",
    "mine.ts",
    "operations.ts",
    "replies.ts",
    "types.ts",
    "zod.ts",
  ]);
});

test("generated code imports its runtime, its siblings and, for validators, zod", async () => {
  const files = await generate([tokenspeed], published);
  const specifiers = [...files.values()].flatMap((text) => [...text.matchAll(/ from "([^"]+)";/g)].map(([, specifier]) => specifier));
  expect([...new Set(specifiers)].sort()).toEqual(["./types.js", "enginewire/wire", "zod"]);
});
