import { tracingChannel } from "node:diagnostics_channel";
import { type Context, context, ROOT_CONTEXT, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Interceptor } from "../../src/index.ts";
import { type DiagnosticsMessage, publishDiagnostics } from "../../src/node/index.ts";
import { openTelemetry } from "../../src/opentelemetry.ts";
import { failureOf } from "../faults/scripted-group.ts";
import { connectSimulated, group } from "./simulated-group.ts";

describe("interceptors", () => {
  it("wrap every call, the first outermost, and see what it became of", async () => {
    const seen: string[] = [];
    const named =
      (name: string): Interceptor =>
      (next) =>
      async (call) => {
        seen.push(`${name} in ${call.operation.name}`);
        try {
          return await next(call);
        } catch (error) {
          seen.push(`${name} failed`);
          throw error;
        } finally {
          seen.push(`${name} out`);
        }
      };
    const { client } = await connectSimulated({}, { interceptors: [named("a"), named("b")] });
    await client.isSleeping();
    expect(seen.splice(0)).toEqual(["a in isSleeping", "b in isSleeping", "b out", "a out"]);
    await failureOf(client.releaseMemoryOccupation());
    expect(seen.splice(0)).toEqual([
      "a in releaseMemoryOccupation",
      "b in releaseMemoryOccupation",
      "b failed",
      "b out",
      "a failed",
      "a out",
    ]);
    await client.control({ $tag: "ReleaseMemoryOccupationReqInput" });
    expect(seen).not.toContain("a failed");
  });

  it("may change a call, or answer it themselves", async () => {
    const slower: Interceptor = (next) => (call) => next({ ...call, options: { timeoutMs: 20, ...call.options } });
    const cached: Interceptor = (next) => (call) => (call.operation.effect === "read" ? Promise.resolve([]) : next(call));
    const { client, engine } = await connectSimulated({ dropReply: [{ op: "FlushCache" }] }, { interceptors: [slower, cached] });
    const asked = engine.state().received.get("IsSleeping");
    expect(await client.isSleeping()).toEqual([]);
    expect(engine.state().received.get("IsSleeping")).toBe(asked);
    expect((await failureOf(client.flushCache())).message).toContain("within 20 ms");
  });
});

describe("OpenTelemetry", () => {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const manager = new AsyncLocalStorageContextManager();
  const interceptors = [openTelemetry({ tracer: provider.getTracer("test") })];
  const take = () => exporter.getFinishedSpans().splice(0);
  beforeAll(() => void context.setGlobalContextManager(manager.enable()));
  afterAll(() => void manager.disable());

  it("makes one span for a call and one child for each engine, with its own time", async () => {
    exporter.reset();
    const { client } = await connectSimulated({ ranks: 2 }, { interceptors });
    const [answer] = await client.isSleeping();
    const spans = take();
    const parent = spans.find(({ name }) => name === "enginewire isSleeping");
    const children = spans.filter(({ parentSpanContext }) => parentSpanContext?.spanId === parent?.spanContext().spanId);
    expect(spans).toHaveLength(3);
    expect(parent?.attributes).toEqual({ "rpc.system": "tokenspeed", "rpc.method": "isSleeping", "enginewire.effect": "read" });
    expect(children.map(({ attributes }) => attributes["enginewire.engine"])).toEqual([0, 1]);
    const [seconds = 0, nanoseconds = 0] = children[0]?.duration ?? [];
    expect(seconds * 1e3 + nanoseconds / 1e6).toBeCloseTo(answer?.durationMs ?? 0, 0);
  });

  it("marks what failed, with its code, and the engines that did answer", async () => {
    exporter.reset();
    const { client } = await connectSimulated(
      { ranks: 2, failOp: [{ op: "InitWeightsUpdateGroup", message: "no route" }] },
      { interceptors },
    );
    await failureOf(client.initWeightsUpdateGroup(group));
    const spans = take();
    const parent = spans.find(({ name }) => name === "enginewire initWeightsUpdateGroup");
    expect(parent?.status.code).toBe(SpanStatusCode.ERROR);
    expect(parent?.attributes["error.type"]).toBe("operation_failed");
    expect(spans.filter((span) => span !== parent).map(({ status }) => status)).toEqual([
      { code: SpanStatusCode.ERROR, message: "no route" },
      { code: SpanStatusCode.ERROR, message: expect.stringContaining("no route") },
    ]);
  });

  it("puts calls below the caller's own span", async () => {
    exporter.reset();
    const { client } = await connectSimulated({}, { interceptors });
    const step = provider.getTracer("test").startSpan("step");
    const inStep: Context = trace.setSpan(ROOT_CONTEXT, step);
    await context.with(inStep, () => client.isSleeping());
    const parent = take().find(({ name }) => name === "enginewire isSleeping");
    expect(parent?.parentSpanContext?.spanId).toBe(step.spanContext().spanId);
  });
});

describe("the diagnostics channel", () => {
  it("publishes each call's start and end, and its failure", async () => {
    const channel = tracingChannel<unknown, DiagnosticsMessage>("enginewire:call");
    const seen: [string, string, unknown][] = [];
    const note = (event: string) => (message: unknown) => {
      const { operation, error } = message as DiagnosticsMessage;
      seen.push([event, operation, (error as { code?: string } | undefined)?.code]);
    };
    const subscriber = {
      start: note("start"),
      end: note("end"),
      asyncStart: note("asyncStart"),
      asyncEnd: note("asyncEnd"),
      error: note("error"),
    };
    const { client } = await connectSimulated({}, { interceptors: [publishDiagnostics()] });
    await client.isSleeping();
    expect(seen).toEqual([]);
    channel.subscribe(subscriber);
    try {
      await client.isSleeping();
      await failureOf(client.releaseMemoryOccupation());
    } finally {
      channel.unsubscribe(subscriber);
    }
    expect(seen.filter(([event]) => event === "start" || event === "asyncEnd" || event === "error")).toEqual([
      ["start", "isSleeping", undefined],
      ["asyncEnd", "isSleeping", undefined],
      ["start", "releaseMemoryOccupation", undefined],
      ["error", "releaseMemoryOccupation", "operation_failed"],
      ["asyncEnd", "releaseMemoryOccupation", "operation_failed"],
    ]);
  });
});
