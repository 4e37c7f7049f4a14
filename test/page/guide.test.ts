// The page of the guide as a reader copies it, in a real Chromium: its own origin, a relay that names it, the package's files.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";
import { expect, it } from "vitest";
import { openPage } from "./open-page.ts";
import { serveEngines, serveFiles } from "./serve-page.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const [, html = ""] = /^```html page\n([\s\S]*?)^```$/m.exec(readFileSync(`${root}docs/guide.md`, "utf8")) ?? [];

/** What the package's folder in `node_modules` has, from the sources. */
async function fileAt(path: string): Promise<string | undefined> {
  if (path === "/index.html") return html;
  const [, name = ""] = /^\/node_modules\/enginewire\/dist\/((?:src|generated)\/[\w/-]+)\.[jt]s$/.exec(path) ?? [];
  const source = `${root}${name}.ts`;
  if (name === "" || !existsSync(source)) return undefined;
  return (await transform(readFileSync(source, "utf8"), { loader: "ts", target: "es2022" })).code;
}

it("the guide's page connects, shows the engines, pauses and resumes them, and says why where it may not", async () => {
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
  for (const [entry, place] of [[".", "src/index.js"], ["./web", "src/web/index.js"]] as const) {
    expect(exports[entry].default).toBe(`./dist/${place}`);
    expect(html).toContain(`"./node_modules/enginewire/dist/${place}"`);
  } // biome-ignore format: two entry points

  const { url } = await serveFiles(fileAt);
  const { relay, engine } = await serveEngines({ ranks: 2 }, { port: 0, origins: [url.slice(0, -1)] });
  const { relay: closed } = await serveEngines({}, { port: 0, origins: [] });
  const { page, faults } = await openPage();
  await page.goto(url);
  const texts = (id: string) => expect.poll(() => page.textContent(id), { timeout: 10_000 });

  await page.fill("[name=relay]", closed.url);
  await page.click("text=Connect");
  await texts("#link").toContain("forbidden: a server answers at the address and refuses this client: its Origin or Host");
  expect(await page.isDisabled("#pause")).toBe(true);

  await page.fill("[name=relay]", relay.url);
  await page.click("text=Connect");
  await texts("#link").toBe("connected as anyone");
  await texts("#engines").toContain("engine 1: up, running, 0 running, 0 of them ours");
  await page.click("#pause");
  await texts("#said").toMatch(/^(engine [01]: done\n){2}$/);
  for (const rank of [0, 1]) expect(engine.state(rank).paused).toBe(true);
  await texts("#engines").toBe([0, 1].map((index) => `engine ${index}: up, paused, 0 running, 0 of them ours`).join("\n"));
  await page.click("#resume");
  await texts("#said").toMatch(/^(engine [01]: done\n){4}$/);
  await texts("#engines").toContain("engine 0: up, running");
  expect(await page.isDisabled("text=Connect")).toBe(true);

  await relay.close("maintenance", { drainMs: 1 });
  await texts("#link").toMatch(/^waiting /);
  // Chromium itself says on its console that a server refuses or is gone
  expect(faults.filter((fault) => !/^WebSocket connection to |^Failed to load resource: .* 426 /.test(fault))).toEqual([]);
});
