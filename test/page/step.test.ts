// A page in a real Chromium runs one reinforcement-learning step against simulated engines through a relay, while requests
// run, and shows it. A screenshot of it stays on disk.
import { mkdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { expect, it } from "vitest";
import { openPage } from "./open-page.ts";
import { serveEngines, serveFiles } from "./serve-page.ts";

const folder = fileURLToPath(new URL("../browser/step/", import.meta.url));
const artifacts = fileURLToPath(new URL("../browser/artifacts/", import.meta.url));

async function bundled(): Promise<string> {
  const options = { bundle: true, write: false, format: "esm", target: "es2022", platform: "browser" } as const;
  const { outputFiles } = await build({ entryPoints: [`${folder}main.ts`], ...options });
  return outputFiles[0]?.text ?? "";
}

/** Runs in the page: notes how many replies it shows, whenever that changes. */
const countReplies = `
  globalThis.replies = [];
  new MutationObserver(() => {
    const { length } = document.querySelectorAll("#steps .ms");
    if (length !== replies.at(-1)) replies.push(length);
  }).observe(document, { childList: true, subtree: true });
`;

const success = (text: string) => /^success.*\d\.\d ms$/.test(text);
const numberIn = (text: string | undefined) => Number(text?.replaceAll(",", ""));

it("runs a step from a page: every engine answers everything, old and new weights serve, and no token is lost", async () => {
  const [html, script] = [readFileSync(`${folder}index.html`, "utf8"), await bundled()];
  const files = new Map(Object.entries({ "/index.html": html, "/main.js": script }));
  const { server, url } = await serveFiles(async (path) => files.get(path));
  const { engine, audited } = await serveEngines({ ranks: 2, maxBatch: 16, forwardMs: 2 }, { server, path: "/relay" });
  const { page, faults } = await openPage();
  await page.addInitScript({ content: countReplies });
  await page.goto(url);
  await page.waitForSelector("main[data-state=done], main[data-state=failed]");
  mkdirSync(artifacts, { recursive: true });
  await page.screenshot({ path: `${artifacts}step.png`, fullPage: true });
  process.stdout.write(`screenshot of the step: ${artifacts}step.png\n`);

  expect(faults).toEqual([]);
  expect(await page.textContent(".state")).toBe("done, nothing lost");
  const rowsOf = (selector: string) =>
    page.$$eval(`${selector} tbody tr`, (rows) => rows.map((row) => [...row.children].map(({ textContent }) => textContent ?? "")));
  const steps = await rowsOf("#steps");
  expect(steps.map(([name]) => name)).toEqual([
    "is the scheduler paused?",
    "pause, letting requests finish",
    "join the trainer's group",
    "update weights, bucket 1 of 3",
    "update weights, bucket 2 of 3",
    "update weights, bucket 3 of 3",
    "flush the prefix cache",
    "resume",
    "is the scheduler paused?",
  ]);
  for (const [, ...replies] of steps.slice(1, -1)) expect(replies.map(success)).toEqual([true, true]);
  for (const index of [0, -1]) {
    for (const reply of steps.at(index)?.slice(1) ?? []) expect(reply).toMatch(/^isPaused: false/);
  }
  // each reply was shown when it came
  const shown = await page.evaluate<number[]>("replies");
  expect(shown.at(-1)).toBe(18);
  expect(shown.length).toBeGreaterThanOrEqual(9);

  const weights = await rowsOf("#weights");
  expect(weights.map(([name]) => name)).toEqual(["those it started with", "after bucket 3"]);
  const served = weights.map(([, , tokens]) => numberIn(tokens));
  const [, sent, whole, tokens, lost] =
    /^([\d,]+) requests sent, ([\d,]+) got every token in order: ([\d,]+) tokens, (\d+) lost$/.exec(
      (await page.textContent("#sum")) ?? "",
    ) ?? [];
  expect(lost).toBe("0");
  expect(whole).toBe(sent);
  expect(numberIn(tokens)).toBe(40 * numberIn(sent));
  expect((served[0] as number) + (served[1] as number)).toBe(numberIn(tokens));
  for (const tokensOf of served) expect(tokensOf).toBeGreaterThanOrEqual(36 * 40);
  expect(await rowsOf("#engines")).toMatchObject([
    ["0", "tokenspeed-0.1.0", "up", "running", "0", expect.stringMatching(/^0 of/)],
    ["1", "tokenspeed-0.1.0", "up", "running", "0", expect.stringMatching(/^0 of/)],
  ]);

  for (const rank of [0, 1]) expect(engine.state(rank).weights).toMatchObject({ version: "step-1", updates: 3 });
  expect(audited.map(({ outcome }) => outcome)).toEqual(new Array(7).fill("ok"));
  for (const { origin, client } of audited) expect([origin, client]).toEqual([url.slice(0, -1), "step page"]);
});
