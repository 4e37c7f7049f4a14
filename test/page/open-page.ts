import sparticuz from "@sparticuz/chromium";
import { chromium, type Page } from "playwright";
import { onTestFinished } from "vitest";

/** A page in a Chromium of its own, closed with the test; `faults` collects errors that nobody caught and errors on its console. */
export async function openPage(): Promise<{ page: Page; faults: readonly string[] }> {
  const browser = await chromium.launch({ executablePath: await sparticuz.executablePath(), args: sparticuz.args });
  onTestFinished(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, deviceScaleFactor: 2 });
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  return { page, faults };
}
