import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { type Operation, operations } from "../../generated/tokenspeed/operations.ts";

const root = new URL("../../", import.meta.url);

function filesIn(folder: string): string[] {
  return readdirSync(new URL(folder, root), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => `${entry.parentPath}/${entry.name}`);
}

// Only the simulated engine and the guard may know what an operation does. All else is derived from the schema.
it("no operation is listed by hand outside the simulated engine and the guard", () => {
  const tags = Object.values<Operation>(operations).flatMap(({ request, reply }) => [request, reply]);
  const stems = tags.map((tag) => tag.replace(/Req(Input|Output)?$/, ""));
  const pattern = new RegExp(`\\b(${[...new Set([...tags, ...stems.filter((stem) => stem !== "Profile")])].join("|")})\\b`);
  const found = [...filesIn("src"), ...filesIn("codegen")]
    .filter((path) => !/\/src\/(testing|cli\/engine|client\/guard)/.test(path))
    .flatMap((path) =>
      readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => pattern.test(line) && !/^\s*(\*|\/\/|\/\*\*)/.test(line))
        .map((line) => `${path}: ${line}`),
    );
  expect(found).toEqual([]);
});
