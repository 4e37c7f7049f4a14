import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { codegen } from "./run-command.ts";
import { besides } from "./wheel.ts";

const wheel = "test/vectors/wheel-0.1.1/io_struct.py";
const also = besides.flatMap((name) => ["--also", `test/vectors/wheel-0.1.1/${name}`]);
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "enginewire-diff-"));
});

afterAll(() => rm(folder, { recursive: true }));

test("it compares a file, the schema and a release", async () => {
  const { code, output } = await codegen("diff", wheel, "schema", ...also);
  expect(code).toBe(1);
  expect(output).toContain("UpdateWeightFromDiskReqInput");
  expect(output).toMatch(/10 changes: 10 compatible\n$/);
  expect((await codegen("diff", "tokenspeed@0.1.1", wheel, ...also)).code).toBe(0);
});

test("it prints JSON, and what it skips apart from it", async () => {
  const { code, output } = await codegen("diff", "schema", "tokenspeed@0.1.1", "--json");
  expect(code).toBe(1);
  expect(JSON.parse(output)).toMatchObject({
    before: "the schema",
    changes: { length: 10, 0: { field: "flush_cache", kind: "last field removed" } },
  });
  const verbose = await codegen("diff", wheel, "tokenspeed@0.1.1", "--verbose");
  expect(verbose.output).toContain(`${wheel}:1231:1: skipped MsgpackEncoder: a class without a base, no struct\n`);
});

test("it ends with 2 where peers would not understand each other", async () => {
  const file = join(folder, "io_struct.py");
  await writeFile(file, "import msgspec\nclass FlushCacheReqInput(msgspec.Struct, array_like=True): pass\n");
  const { code, output } = await codegen("diff", "schema", file);
  expect(code).toBe(2);
  expect(output).toContain("tag changed");
});

test("it says what it cannot read, and ends with 1", async () => {
  const file = join(folder, "broken.py");
  await writeFile(file, "import msgspec\nclass A(msgspec.Struct):\n    x: Foo\n");
  expect(await codegen("diff", "schema", file)).toEqual({ code: 1, output: `${file}:3:8: there is no such type in this file: Foo\n` });
  expect(await codegen("diff", "schema", "tokenspeed@9.9.9")).toEqual({
    code: 1,
    output: "tokenspeed@9.9.9 is not recorded; there are tokenspeed@0.1.0, tokenspeed@0.1.1\n",
  });
  const gone = join(folder, "gone.py");
  expect(await codegen("diff", "schema", gone)).toEqual({ code: 1, output: `${gone} cannot be read: there is no such file\n` });
});
