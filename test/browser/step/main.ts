// One reinforcement-learning step on engines behind a relay, while requests run, all of it from a page.
import { DemoRequests } from "../../../src/cli/demo-requests.ts";
import { createClient, isEngineWireError } from "../../../src/index.ts";
import { connect } from "../../../src/web/index.ts";
import { steps } from "./steps.ts";
import { addStep, showConnection, showEngines, showRequests, showState } from "./view.ts";

/** Requests that generate at a time, the tokens of each, and how many are to end before the step begins and after it. */
const atOnce = 12;
const maxNewTokens = 40;
const enough = 36;
/** How often numbers that change all the time are shown anew, in milliseconds. */
const showMs = 50;

async function run(): Promise<void> {
  const url = new URL("/relay", location.href.replace(/^http/, "ws")).href;
  await using connection = await connect(url, { client: "step page" });
  const client = createClient(connection);
  const engines = connection.engines.map(({ index }) => index);
  showConnection(url, connection.identity, connection);
  showState("running", "running");

  const requests = new DemoRequests(connection, atOnce, maxNewTokens);
  const show = (): void => {
    showRequests(requests.report);
    showEngines(connection);
  };
  const shown = setInterval(show, showMs);
  const ended = async (many: number): Promise<void> => {
    while (requests.report.whole < many) await new Promise((resolve) => setTimeout(resolve, showMs));
  };
  try {
    await ended(enough);
    for (const { name, call } of steps) await call(client, { onReply: addStep(name, engines) });
    await ended(requests.report.whole + enough);
    const { lost } = await requests.stop();
    showState(lost === 0 ? "done" : "failed", lost === 0 ? "done, nothing lost" : `${lost} tokens lost`);
  } finally {
    clearInterval(shown);
    show();
  }
}

try {
  await run();
} catch (error) {
  showState("failed", isEngineWireError(error) ? error.message : String(error));
}
