import { type EngineWireError, isEngineWireError } from "../wire/errors.ts";
import type { Client } from "./create-client.ts";
import type { CallGuard } from "./guard/call-guard.ts";
import type { EngineState } from "./guard/engine-state.ts";
import type { ClientCallOptions } from "./interceptors.ts";

/** How to look at the engines. */
export interface StateOptions extends Pick<ClientCallOptions, "signal" | "timeoutMs"> {
  /** Asks every engine, instead of telling what the replies so far have said. Default false. */
  readonly refresh?: boolean;
}

/** One engine's state, and what it said when it was asked. */
export interface EngineReport extends EngineState {
  /** Its answer to isSchedulerPaused, when it was asked and answered. */
  readonly isPaused?: boolean;
  /** Its answer to isSleeping, when it was asked and answered. */
  readonly isSleeping?: boolean;
  /** Why it could not be asked. */
  readonly error?: EngineWireError;
}

/** What is known of a group of engines. */
export interface GroupState {
  /** Every engine that was up when the client was made, in index order. */
  readonly engines: readonly EngineReport[];
  /** Whether all engines could be asked, if they were, and are in the same state. */
  readonly agree: boolean;
  /** A sentence for each thing on which they differ, or for an engine that could not be asked. */
  readonly disagreements: readonly string[];
}

/** Where to bring the engines. */
export interface ReconcileOptions extends Pick<ClientCallOptions, "signal" | "timeoutMs"> {
  /** `running`: awake and scheduling. `paused`: awake, drained and paused; running requests are finished first. */
  readonly target: "running" | "paused";
}

/** What was done to one engine. */
export interface Reconciliation {
  readonly engine: number;
  /** Its state when it was asked first. */
  readonly before: EngineReport;
  /** The operations sent to it, in order. */
  readonly did: readonly string[];
  /** Its state when it was asked last. */
  readonly after: EngineReport;
  /** Whether it is at the target. */
  readonly reached: boolean;
  /** What stopped it. */
  readonly error?: EngineWireError;
}

const compared = ["scheduler", "draining", "weightGroup", "profiler", "isPaused", "isSleeping"] as const;

/** Tells what is known of the engines, after asking them if that is wanted. */
export async function groupState(client: Client, guard: CallGuard, options: StateOptions): Promise<GroupState> {
  const { refresh = false, ...limits } = options;
  const known = client.connection.engines.map(({ index }) => index);
  const engines = await Promise.all(known.map((engine) => (refresh ? ask(client, guard, engine, limits) : guard.state(engine))));
  const disagreements = [...differences(engines)];
  return { engines, agree: disagreements.length === 0, disagreements };
}

/** Brings every engine to the target by itself; an engine that cannot be brought there does not keep the others from it. */
export async function reconcile(client: Client, guard: CallGuard, options: ReconcileOptions): Promise<readonly Reconciliation[]> {
  const { target, ...limits } = options;
  const engines = client.connection.engines.map(({ index }) => index);
  return Promise.all(engines.map((engine) => reconcileOne(client, guard, engine, target, limits)));
}

async function reconcileOne(
  client: Client,
  guard: CallGuard,
  engine: number,
  target: ReconcileOptions["target"],
  limits: ClientCallOptions,
): Promise<Reconciliation> {
  const before = await ask(client, guard, engine, limits);
  const did: string[] = [];
  let error: EngineWireError | undefined = before.error;
  const options = { ...limits, engines: [engine] };
  const step = async (name: "resumeScheduler" | "resumeMemoryOccupation" | "pauseScheduler"): Promise<void> => {
    did.push(name);
    if (name === "pauseScheduler") await client.pauseScheduler({ mode: "wait" }, options);
    else await client[name]({}, options);
  };
  try {
    // a release that drains falls asleep when it is done: it is ended here or met below
    if (error === undefined && before.draining !== undefined && target === "running") await step("resumeScheduler");
    if (error === undefined && before.isSleeping) await step("resumeMemoryOccupation");
    if (error === undefined && target === "paused" && guard.state(engine).scheduler !== "paused") await step("pauseScheduler");
    if (error === undefined && target === "running" && (await isPaused(client, options))) await step("resumeScheduler");
  } catch (cause) {
    if (!isEngineWireError(cause)) throw cause;
    error = cause;
  }
  const after = await ask(client, guard, engine, limits);
  const reached = after.error === undefined && after.isSleeping === false && after.isPaused === (target === "paused");
  return { engine, before, did, after, reached, ...(error !== undefined && { error }) };
}

async function isPaused(client: Client, options: ClientCallOptions): Promise<boolean> {
  const [answer] = await client.isSchedulerPaused({}, options);
  return answer?.reply.isPaused ?? false;
}

async function ask(client: Client, guard: CallGuard, engine: number, limits: ClientCallOptions): Promise<EngineReport> {
  const options = { ...limits, engines: [engine] };
  try {
    const [[paused], [sleeping]] = await Promise.all([client.isSchedulerPaused({}, options), client.isSleeping({}, options)]);
    return {
      ...guard.state(engine),
      ...(paused !== undefined && { isPaused: paused.reply.isPaused }),
      ...(sleeping !== undefined && { isSleeping: sleeping.reply.isSleeping }),
    };
  } catch (error) {
    if (!isEngineWireError(error)) throw error;
    return { ...guard.state(engine), error };
  }
}

function* differences(engines: readonly EngineReport[]): Iterable<string> {
  for (const { engine, error } of engines) if (error !== undefined) yield `engine ${engine} could not be asked: ${error.message}`;
  for (const name of compared) {
    const values = new Map<string, number[]>();
    for (const report of engines) {
      if (report.error !== undefined) continue;
      const value = String(report[name] ?? "no");
      values.set(value, [...(values.get(value) ?? []), report.engine]);
    }
    if (values.size > 1) yield `${name}: ${[...values].map(([value, indices]) => `${value} on ${indices.join(", ")}`).join("; ")}`;
  }
}
