import type { Event, EventInit } from "../../../generated/relay/types.ts";
import { decodeControlOutput, decodeControlRequest, encodeControlOutput, encodeControlRequest } from "../../messages.ts";
import { EngineWireError } from "../../wire/errors.ts";
import type { ConnectionEvent } from "../connection.ts";
import { fromFailure, toFailure } from "./failure.ts";

/** An event as it travels; `undefined` for the end of the relay's own connection, which clients are told in another way. */
export function toEvent(event: ConnectionEvent): EventInit | undefined {
  const { type } = event;
  switch (type) {
    case "engine_dead":
    case "malformed_message":
      return { type, engine: event.engine, failure: toFailure(event.error) };
    case "late_reply": {
      const { engine, tag, lateMs, request, reply } = event;
      return { type, engine, tag, lateMs, request: encodeControlRequest(request), reply: encodeControlOutput(reply) };
    }
    case "lost_reply":
      return { type, engine: event.engine, tag: event.tag, request: encodeControlRequest(event.request) };
    case "unexpected_reply":
    case "unknown_tag":
      return { type, engine: event.engine, tag: event.tag };
    case "unexpected_message":
      return { type, engine: event.engine, tag: event.socket, detail: event.detail };
    case "unexpected_output":
      return { type, engine: event.engine, detail: event.rid };
    case "load":
      return { type, engine: event.engine, load: event.load };
    case "events_dropped":
      return { type, count: event.count };
    case "closed":
      return undefined;
  }
}

/** The event that travelled; `undefined` for one of a type that this release does not know. Throws what decoders throw. */
export function fromEvent(event: Event): ConnectionEvent | undefined {
  const { type, tag, detail } = event;
  // types without an engine have none; the others always say it
  const engine = event.engine ?? -1;
  switch (type) {
    case "engine_dead":
    case "malformed_message": {
      const error =
        event.failure === null ? new EngineWireError("malformed", "the relay does not say why", { engine }) : fromFailure(event.failure);
      return { type, engine, error };
    }
    case "late_reply": {
      if (event.request === null || event.reply === null) return undefined;
      const request = decodeControlRequest(event.request);
      return { type, engine, tag: tag ?? "", lateMs: event.lateMs ?? 0, request, reply: decodeControlOutput(event.reply) };
    }
    case "lost_reply":
      return event.request === null ? undefined : { type, engine, tag: tag ?? "", request: decodeControlRequest(event.request) };
    case "unexpected_reply":
    case "unknown_tag":
      return { type, engine, tag: tag ?? "" };
    case "unexpected_message": {
      const socket = tag === "handshake" ? "handshake" : "input";
      return { type, socket, detail: detail ?? "", ...(event.engine !== null && { engine: event.engine }) };
    }
    case "unexpected_output":
      return { type, engine, rid: detail ?? "" };
    case "load":
      return event.load === null ? undefined : { type, engine, load: event.load };
    case "events_dropped":
      return { type, count: event.count ?? 0 };
    default:
      return undefined;
  }
}
