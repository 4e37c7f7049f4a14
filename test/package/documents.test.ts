import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { renderGuide } from "../../docs/guide-tables.ts";
import { errorCodes, guardTable } from "../../src/index.ts";
import { resolveLimits } from "../../src/relay/limits.ts";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

describe("the documents", () => {
  it("describe every error code, and no other, in the order of the source", () => {
    const rows = [...read("docs/errors.md").matchAll(/^\| `(\w+)` \|(.+)\|(.+)\|(.+)\|$/gm)];
    expect(rows.map(([, code]) => code)).toEqual([...errorCodes]);
    for (const [, , ...cells] of rows) for (const cell of cells) expect(cell.trim()).not.toBe("");
  });

  it("have their tables as the code has them", () => {
    expect(read("docs/guide.md"), "run `npm run docs:guide`").toBe(renderGuide());
    for (const { because } of guardTable) expect(read("docs/guide.md")).toContain(because);
  });

  it("have every limit of a relay with its default", () => {
    const rows = [...read("docs/relay-security.md").matchAll(/^\| `(\w+)` \| (\d+) \|/gm)].map(([, name, value]) => [name, Number(value)]);
    expect(Object.fromEntries(rows)).toEqual(resolveLimits());
  });

  it("keep the README within 60 lines", () => {
    expect(read("README.md").trimEnd().split("\n").length).toBeLessThanOrEqual(60);
  });

  it("link only to files that exist", () => {
    for (const document of [
      "README.md",
      "docs/errors.md",
      "docs/protocol.md",
      "docs/codegen.md",
      "docs/guide.md",
      "docs/relay-security.md",
    ]) {
      for (const [, target = ""] of read(document).matchAll(/\]\((?!https?:)([^)#]+)\)/g)) {
        expect(() => read(target), `${document} links to ${target}`).not.toThrow();
      }
    }
  });

  it("name only entry points, commands and scripts of the package", () => {
    const settings = JSON.parse(read("package.json"));
    const readme = read("README.md");
    for (const [, entry = ""] of readme.matchAll(/\| `enginewire\/(\w+)` \|/g))
      expect(Object.keys(settings.exports)).toContain(`./${entry}`);
    for (const [, script = ""] of readme.matchAll(/npm (?:run )?(start|test|\w+:\w+|check|bench)\b/g)) {
      expect(Object.keys(settings.scripts)).toContain(script);
    }
  });
});
