/**
 * Spans for control calls, through the OpenTelemetry API. Needs `@opentelemetry/api`; without an SDK registered it does
 * nothing.
 *
 * @packageDocumentation
 */
import { context, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import type { ClientCall, Interceptor } from "./client/interceptors.ts";
import type { EngineReply } from "./transport/connection.ts";
import { isEngineWireError } from "./wire/errors.ts";

/** What the interceptor can be told. */
export interface OpenTelemetryOptions {
  /** Default: the globally registered provider's tracer named `enginewire`. */
  readonly tracer?: Tracer;
}

/**
 * Makes one span for each call, named after its operation, and in it one child for each engine that answered, with that
 * engine's own time. A failed call, or an engine that answered `success: false`, has the error status.
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Interceptor {
  const tracer = options.tracer ?? trace.getTracer("enginewire");
  return (next) => async (call) => {
    const start = Date.now();
    const span = tracer.startSpan(`enginewire ${call.operation.name}`, {
      kind: SpanKind.CLIENT,
      startTime: start,
      attributes: attributesOf(call),
    });
    const inSpan = trace.setSpan(context.active(), span);
    try {
      const replies = await context.with(inSpan, () => next(call));
      for (const reply of replies) engineSpan(reply);
      return replies;
    } catch (error) {
      if (isEngineWireError(error)) for (const reply of (error.replies ?? []) as readonly EngineReply[]) engineSpan(reply);
      fail(span, error);
      throw error;
    } finally {
      span.end();
    }

    function engineSpan({ engine, reply, durationMs }: EngineReply): void {
      const end = Date.now();
      const attributes = { ...attributesOf(call), "enginewire.engine": engine };
      const startTime = Math.max(start, end - durationMs);
      const child = tracer.startSpan(`enginewire ${call.operation.name} engine`, { kind: SpanKind.CLIENT, startTime, attributes }, inSpan);
      if ("success" in reply && !reply.success) {
        child.setStatus({ code: SpanStatusCode.ERROR, message: "message" in reply ? reply.message : "" });
      }
      child.end(startTime + durationMs);
    }
  };
}

function attributesOf({ operation }: ClientCall): Record<string, string> {
  return { "rpc.system": "tokenspeed", "rpc.method": operation.name, "enginewire.effect": operation.effect };
}

function fail(span: Span, error: unknown): void {
  span.setAttribute("error.type", isEngineWireError(error) ? error.code : "unexpected");
  span.recordException(error as Error);
  span.setStatus({ code: SpanStatusCode.ERROR, message: (error as Error).message });
}
