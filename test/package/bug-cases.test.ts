import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const ids = [
  "Z01 Z03 Z04 Z05 Z07 Z08 Z10 Z12 Z13",
  "M01 M03 M05 M06 M08 M09 M11 M13 M14",
  "P01 P03 P04 P05 P06 P09 P10 P12",
  "E01 E02 E04 E06 E08 E09 E11 E13 E14 E15",
  "W01 W03 W04 W05 W07 W09 W10 W11 W13",
].flatMap((line) => line.split(" "));

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const rows = [...read("docs/bug-cases.md").matchAll(/^\| ([A-Z]\d\d) \| (.+?) \| (.+) \|$/gm)].map(
  ([, id = "", story = "", where = ""]) => ({
    id,
    story,
    where,
    tests: [...where.matchAll(/`(test\/[^`]+)` ("[^"]+")/g)].map(([, file = "", quoted = ""]) => ({ file, title: quoted.slice(1, -1) })),
  }),
);

describe("the bug cases", () => {
  it("are all in the table, once and in order", () => {
    expect(rows.map(({ id }) => id)).toEqual(ids);
    expect(ids).toHaveLength(45);
  });

  it.each(rows.map((row) => [row.id, row] as const))("%s has its tests where the table says, or a reason", (_, { story, where, tests }) => {
    expect(story.length).toBeGreaterThan(20);
    if (tests.length === 0) expect(where).toMatch(/^Cannot happen: .{20,}/);
    for (const { file, title } of tests) expect(read(file), `${file} has no "${title}"`).toContain(title);
    // every file that is named is named with a title
    expect(where.match(/`test\//g)?.length ?? 0).toBe(tests.length);
  });

  it("that name a test by their id are in the table with it", () => {
    const named = [...read("test/faults/bug-cases.test.ts").matchAll(/"([A-Z]\d\d )(.+?)"/g)].map(([, id, title]) => `${id}${title}`);
    expect(named.length).toBeGreaterThan(10);
    for (const title of named) {
      const row = rows.find(({ id }) => id === title.slice(0, 3));

      expect(row?.tests.map((test) => test.title)).toContain(title);
    }
  });
});
