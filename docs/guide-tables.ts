// Renders the tables of docs/guide.md from what the code itself uses. `npm run docs:guide` writes them; a test compares.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { guardTable, type Operation, operations } from "../src/index.ts";

const path = fileURLToPath(new URL("guide.md", import.meta.url));

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function duration(milliseconds: number): string {
  return milliseconds % 60_000 === 0 ? `${milliseconds / 60_000} min` : `${milliseconds / 1000} s`;
}

const all = Object.values<Operation>(operations);

const tables: Readonly<Record<string, () => string>> = {
  operations: () =>
    table(
      ["method", "what", "acts on", "answered", "default timeout", "repeatable"],
      all.map(({ name, summary, effect, answers, timeoutMs, repeatable }) => [
        `\`${name}\``,
        summary,
        effect,
        answers,
        duration(timeoutMs),
        repeatable ? "yes" : "no",
      ]),
    ),
  states: () =>
    table(
      ["not sent", "while an engine", "because", "instead"],
      guardTable.map(({ operations: names, when, because, remedy }) => [
        names.map((name) => `\`${name}\``).join(", "),
        when,
        because,
        remedy,
      ]),
    ),
  values: () =>
    table(
      ["method", "field", "refused", "because"],
      all.flatMap(({ name, refuses }) =>
        refuses.map(({ field, when, because, values, limit, other }) => {
          const what = [when, values?.join(", "), limit, other === undefined ? undefined : `\`${other}\``].filter(
            (part) => part !== undefined,
          );
          return [`\`${name}\``, `\`${field}\``, what.join(" "), because];
        }),
      ),
    ),
};

/** The guide with its tables rendered anew. */
export function renderGuide(text: string = readFileSync(path, "utf8")): string {
  return text.replace(/(<!-- table: (\w+) -->\n)[\s\S]*?(<!-- end -->)/g, (whole, start: string, name: string, end: string) => {
    const render = tables[name];
    return render === undefined ? whole : `${start}${render()}\n${end}`;
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(path, renderGuide());
