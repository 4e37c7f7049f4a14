import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { codegen } from "./run-command.ts";
import { besides } from "./wheel.ts";

const source = `import msgspec

class BaseReq(msgspec.Struct, tag=True, kw_only=True, array_like=True):
    rid: str | None = None

class PingReqInput(BaseReq, kw_only=True):
    # What comes back.
    text: str

class PingReqOutput(BaseReq, kw_only=True):
    text: str
`;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "enginewire-sync-command-"));
});

afterAll(() => rm(folder, { recursive: true }));

test("a fork's schema is made, decided about, generated from, kept up and watched", async () => {
  const file = join(folder, "io_struct.py");
  const schema = join(folder, "my-engine");
  const places = ["--schema", schema, "--out", join(folder, "generated")];
  await writeFile(file, source);

  const dry = await codegen("sync", file, ...places, "--dry-run");
  expect(dry.code).toBe(1);
  expect(dry.output).toContain("would write, and has not:");
  expect(await readdir(folder)).toEqual(["io_struct.py"]);

  const first = await codegen("sync", file, ...places, "--verbose");
  expect(first.code).toBe(1);
  expect(first.output).toContain(`${file}:3:7: skipped BaseReq: a base of other structs`);
  expect(first.output).toContain("new operations, for a person to decide about: ping");
  expect(first.output).toContain(
    "no code is generated before this is settled: 8 problems in the schema:\n- my-engine.release: a person has to decide: ",
  );
  expect((await readdir(schema)).sort()).toEqual(["base.ts", "index.ts", "messages.ts"]);

  const answers: Record<string, string> = { effect: '"read"', answers: '"at once"', timeoutMs: "1000", repeatable: "true" };
  for (const name of ["index.ts", "messages.ts"]) {
    const text = await readFile(join(schema, name), "utf8");
    await writeFile(
      join(schema, name),
      text.replaceAll(/(\w+): decide\(".*"\)/g, (_, key: string) => `${key}: ${answers[key] ?? '"0.1.0"'}`),
    );
  }
  const decided = await codegen("sync", file, ...places);
  expect(decided.code).toBe(0);
  expect(decided.output).toContain("say the same");
  expect(await readFile(join(folder, "generated/my-engine/encoders.ts"), "utf8")).toContain('from "enginewire/wire"');
  const again = await codegen("sync", file, ...places);
  expect(again).toMatchObject({ code: 0, output: expect.stringContaining("nothing to write") });

  expect(await codegen("check", ...places, "--against", file)).toMatchObject({ code: 0, output: expect.stringContaining("say the same") });
  await writeFile(file, source.replace("    text: str\n\n", "    text: str\n    count: int = 1\n\n"));
  const moved = await codegen("check", ...places, "--against", file);
  expect(moved.code).toBe(1);
  expect(moved.output).toContain("field appended with default: int = 1");
});

test("what is no Python changes nothing", async () => {
  const file = join(folder, "broken.py");
  const schema = join(folder, "untouched");
  await writeFile(file, `${source}\nclass Cut(BaseReq\n`);
  const { code, output } = await codegen("sync", file, "--schema", schema, "--out", join(folder, "nothing"));
  expect({ code, output }).toEqual({ code: 1, output: `${file}:13:17: this is not Python: class Cut(BaseReq\n` });
  await writeFile(file, "x = 1\n");
  expect(await codegen("sync", file, "--schema", schema, "--out", join(folder, "nothing"))).toEqual({
    code: 1,
    output: `${file} has no structs\n`,
  });
  expect(await readdir(folder)).not.toEqual(expect.arrayContaining(["untouched"]));
  expect(await readdir(folder)).not.toEqual(expect.arrayContaining(["nothing"]));
});

test("this package's own schema is watched as well", async () => {
  const also = besides.flatMap((name) => ["--also", `test/vectors/wheel-0.1.1/${name}`]);
  const against = ["check", "--against", "test/vectors/wheel-0.1.1/io_struct.py", ...also];
  const { code, output } = await codegen(...against);
  expect(code).toBe(1);
  expect(output).toContain("last field removed");
  expect((await codegen(...against, "--from", "tokenspeed@0.1.1")).code).toBe(0);
});
