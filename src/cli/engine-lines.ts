import { decodeEngineCoreReadyResponse } from "../../generated/tokenspeed/decoders.ts";
import { encodeEngineCoreReadyResponse } from "../../generated/tokenspeed/encoders.ts";
import type { EngineEvent, EngineMessage } from "../testing/index.ts";

/** A line of stdout without its time. */
export interface EventLine {
  readonly event: string;
  readonly [field: string]: unknown;
}

/** A struct under its names on the wire, with its tag. */
function asOnWire(value: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([property, field]) => [
      property === "$tag" ? "tag" : property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      field,
    ]),
  );
}

function struct(value: object | Uint8Array): unknown {
  return value instanceof Uint8Array ? { frame: Buffer.from(value).toString("hex") } : asOnWire(value);
}

function called(callId: number | undefined): { readonly call_id?: number } {
  return callId === undefined ? {} : { call_id: callId };
}

function briefly(message: EngineMessage): EventLine | Record<string, unknown> {
  switch (message.kind) {
    case "add":
      return { type: "add", rid: message.admission.rid, prompt: message.admission.prompt.length };
    case "refused":
      return { type: "add", rid: message.rid, prompt: message.promptTokens };
    case "abort":
      return { type: "abort", value: message.rids };
    case "control":
      return {
        type: "control",
        op: message.request.$tag.replace(/Req(Input)?$/, ""),
        ...called(message.callId),
        value: struct(message.request),
      };
    case "refused_call":
      return { type: "refused_call", ...called(message.callId), method: message.method, reason: message.message };
  }
}

/** The line of an event, or `undefined` for one that has none. */
export function lineOf(event: EngineEvent): EventLine | undefined {
  switch (event.event) {
    case "ready": {
      const { registration } = event;
      const all = registration instanceof Uint8Array ? registration : encodeEngineCoreReadyResponse(registration);
      return { ...event, registration: registration instanceof Uint8Array ? struct(all) : asOnWire(decodeEngineCoreReadyResponse(all)) };
    }
    case "received":
      return { ...event, message: briefly(event.message) };
    case "replied": {
      const { callId, reply, ...rest } = event;
      return { ...rest, ...called(callId), reply: struct(reply) };
    }
    case "reply_dropped":
      return { ...event, reply: struct(event.reply) };
    case "outputs": {
      const rows = event.rows.map(({ rid, outputIds, finish }) => ({ rid, output_ids: outputIds, finish_reason: finish?.type ?? null }));
      return { ...event, rows };
    }
    case "frontend_lost":
      return { ...event, by: "watch" };
    case "dropped":
    case "ended":
      return undefined;
    default:
      return event;
  }
}
