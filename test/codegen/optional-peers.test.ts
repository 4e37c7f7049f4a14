import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";

const repository = join(import.meta.dirname, "../..");
const tsx = pathToFileURL(join(repository, "node_modules/tsx/dist/esm/index.mjs")).href;
let folder: string;

// The generator beside nothing but commander, as a package manager leaves it where optional peers are not installed.
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "enginewire-peers-"));
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  for (const part of ["codegen", "schema"]) await cp(join(repository, part), join(folder, part), { recursive: true });
  await mkdir(join(folder, "node_modules"));
  await install("commander");
});

afterAll(() => rm(folder, { recursive: true }));

function install(name: string): Promise<void> {
  return symlink(join(repository, "node_modules", name), join(folder, "node_modules", name));
}

function run(...args: string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
  return promisify(execFile)(process.execPath, ["--import", tsx, "codegen/main.ts", ...args], { cwd: folder });
}

test("a peer that is missing is named with the command that installs it", async () => {
  expect((await run("--help")).stdout).toContain("Usage: enginewire-codegen");
  await expect(run("generate")).rejects.toMatchObject({
    code: 1,
    stderr: "the generator needs zod, which is not installed: npm install --save-dev zod\n",
  });
  await expect(run("diff", "schema", "schema")).rejects.toMatchObject({
    code: 1,
    stderr: "the generator needs @lezer/python, which is not installed: npm install --save-dev @lezer/python\n",
  });
  await install("zod");
  await expect(run("check")).rejects.toMatchObject({
    code: 1,
    stderr: "the generator needs ts-morph, which is not installed: npm install --save-dev ts-morph\n",
  });
});
