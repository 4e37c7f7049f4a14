import { decodeAbortRids } from "../../generated/tokenspeed/decoders.ts";
import type { ControlDialect } from "../transport/capabilities.ts";
import { type AdmissionLimits, admit } from "./admission.ts";
import { readControlRequest } from "./control-request.ts";
import { readGenerateRequest } from "./generate-request.ts";
import type { EngineMessage } from "./messages.ts";
import { readSlimCall } from "./slim-call.ts";

/** The type bytes of the input socket. */
const [add, abort, control] = [0, 1, 2];

/**
 * Reads what reached an input socket. Throws for what an engine drops with a warning and no answer: an unknown type, a
 * payload that does not decode or is in the other control dialect, a generate request without a single request id.
 */
export function readEngineMessage(
  frames: readonly Uint8Array[],
  limits: AdmissionLimits,
  dialect: ControlDialect = "tagged",
): EngineMessage {
  const [type, payload] = frames;
  if (type === undefined || payload === undefined) throw new TypeError("a message has a type and a payload");
  if (type.length !== 1) throw new TypeError(`the type frame has ${type.length} bytes`);
  switch (type[0]) {
    case add: {
      const message = admit(readGenerateRequest(frames.slice(1)), limits);
      if (message === undefined) throw new TypeError("a generate request needs a single request id");
      return message;
    }
    case abort:
      return { kind: "abort", rids: decodeAbortRids(payload) };
    case control:
      return dialect === "slim" ? readSlimCall(payload) : { kind: "control", request: readControlRequest(payload) };
    default:
      throw new TypeError(`unknown message type ${type[0]}`);
  }
}
