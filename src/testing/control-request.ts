import { decodeControlRequest } from "../../generated/tokenspeed/decoders.ts";
import { encodeControlRequest } from "../../generated/tokenspeed/encoders.ts";
import type { ControlRequest, ControlRequestInit } from "../../generated/tokenspeed/types.ts";
import { decodeAny, encodeAny } from "../wire/index.ts";

/** Fields that the engine reads more widely than the schema allows clients to write, by tag. */
const wider: Readonly<
  Record<string, { readonly position: number; readonly property: string; readonly type: string; readonly legal: unknown }>
> = {
  PauseSchedulerReqInput: { position: 3, property: "mode", type: "string", legal: "wait" },
  ProfileReq: { position: 3, property: "kind", type: "number", legal: 2 },
};

/**
 * Reads a control request as the engine does: any string is a pause mode (it is refused with a reply, not dropped) and
 * any integer a profile kind. Throws what the decoder throws for everything else.
 */
export function readControlRequest(payload: Uint8Array): ControlRequest {
  try {
    return decodeControlRequest(payload);
  } catch (error) {
    const fields = decodeAny(payload);
    if (!Array.isArray(fields)) throw error;
    const field = wider[String(fields[0])];
    const value: unknown = field === undefined ? undefined : fields[field.position];
    if (field === undefined || typeof value !== field.type || (typeof value === "number" && !Number.isSafeInteger(value))) throw error;
    fields[field.position] = field.legal;
    return { ...decodeControlRequest(encodeAny(fields)), [field.property]: value } as ControlRequest;
  }
}

/** Makes a control request of values by property, as widely as one is read. Throws what the encoder throws. */
export function controlRequestOf($tag: string, values: Readonly<Record<string, unknown>>): ControlRequest {
  const field = wider[$tag];
  const value: unknown = field === undefined ? undefined : values[field.property];
  const widely = field !== undefined && typeof value === field.type;
  const init = { $tag, ...values, ...(widely && { [field.property]: field.legal }) } as ControlRequestInit;
  return { ...decodeControlRequest(encodeControlRequest(init)), ...(widely && { [field.property]: value }) } as ControlRequest;
}
