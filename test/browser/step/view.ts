// What the page shows. Text only ever enters as text: an engine's message is not markup.
import type { RequestsReport } from "../../../src/cli/demo-requests.ts";
import type { Connection, EngineReply } from "../../../src/index.ts";

function find(selector: string): HTMLElement {
  const found = document.querySelector<HTMLElement>(selector);
  if (found === null) throw new Error(`the page has no ${selector}`);
  return found;
}

function cell(tag: "td" | "th", content: string | Node, kind = ""): HTMLElement {
  const element = document.createElement(tag);
  element.className = kind;
  element.append(content);
  return element;
}

function row(...cells: readonly HTMLElement[]): HTMLElement {
  const element = document.createElement("tr");
  element.append(...cells);
  return element;
}

function mark(kind: string, text: string): HTMLElement {
  const element = document.createElement("span");
  element.className = kind;
  element.textContent = text;
  return element;
}

const count = (value: number): string => value.toLocaleString("en");

/** Says how things stand. */
export function showState(state: "connecting" | "running" | "done" | "failed", text: string): void {
  find("main").dataset.state = state;
  find(".state").textContent = text;
}

/** Says what the page is connected to, and makes a column for each engine. */
export function showConnection(url: string, identity: string, { engines }: Connection): void {
  find(".link").textContent = `${engines.length} engines through the relay at ${url}, as ${identity}`;
  const heads = engines.map(({ index }) => cell("th", `engine ${index}`));
  find("#steps thead").replaceChildren(row(cell("th", "step"), ...heads));
}

/** Adds a line for a step; returns what fills in an engine's reply when it comes. */
export function addStep(name: string, engines: readonly number[]): (reply: EngineReply) => void {
  const cells = new Map(engines.map((engine) => [engine, cell("td", "…")]));
  find("#steps tbody").append(row(cell("td", name), ...cells.values()));
  return ({ engine, reply, durationMs }) => {
    const parts = Object.entries<unknown>({ ...reply }).map(([field, value]) => {
      if (field === "success") return value === true ? mark("yes", "success") : mark("no", "failed");
      if (field === "$tag" || value === "" || value === null) return "";
      return mark("said", field === "message" ? String(value) : `${field}: ${String(value)}`);
    });
    cells.get(engine)?.replaceChildren(...parts, mark("ms", `${durationMs.toFixed(1)} ms`));
  };
}

/** Shows what became of the requests so far. */
export function showRequests({ sent, whole, tokens, lost, served }: RequestsReport): void {
  const most = Math.max(1, ...served.map(({ tokens: given }) => given));
  const rows = served.map(({ loads, tokens: given, requests }) => {
    const bar = document.createElement("div");
    bar.style.width = `${(100 * given) / most}%`;
    const name = loads === 0 ? "those it started with" : `after bucket ${loads}`;
    return row(cell("td", name), cell("td", bar, "bar"), cell("td", count(given), "number"), cell("td", count(requests), "number"));
  });
  find("#weights tbody").replaceChildren(...rows);
  find("#sum").textContent =
    `${count(sent)} requests sent, ${count(whole)} got every token in order: ${count(tokens)} tokens, ${count(lost)} lost`;
}

/** Shows what is known of each engine. */
export function showEngines({ engines, guard }: Connection): void {
  const rows = engines.map(({ index, registration, state, inFlight, load }) =>
    row(
      cell("td", String(index)),
      cell("td", registration.vllmVersion),
      cell("td", state),
      cell("td", guard?.states.find((known) => known.engine === index)?.scheduler ?? "unknown"),
      cell("td", count(inFlight), "number"),
      cell("td", load === undefined ? "" : `${count(load.kvActivePages)} of ${count(load.kvTotalPages)}`, "number"),
    ),
  );
  find("#engines tbody").replaceChildren(...rows);
}
