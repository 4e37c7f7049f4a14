import { encodeControlReplySlim } from "../../generated/tokenspeed/encoders.ts";
import type { ControlOutputInit } from "../../generated/tokenspeed/types.ts";
import { encodeAny } from "../wire/index.ts";

/** What a registration has besides its fields where the engine speaks the second dialect. */
const announcement = {
  key: "positional_layouts",
  value: { ControlReplySlim: ["call_id", "success", "message", "engine_index"] },
} as const;

/** Which call is answered, by which engine. */
export interface Answered {
  readonly callId: number;
  readonly engineIndex: number;
}

/** Adds the announcement of the second dialect to an encoded registration, whose other bytes stay as they are. */
export function announceSlim(registration: Uint8Array): Uint8Array {
  const [head = 0, high = 0, low = 0] = registration;
  // a map of up to 15 keys has its length in the first byte
  const short = head >= 0x80 && head <= 0x8f;
  const length = (short ? head & 0x0f : (high << 8) | low) + 1;
  const fields = registration.subarray(short ? 1 : 3);
  return Uint8Array.from([0xde, length >> 8, length & 0xff, ...fields, ...encodeAny(announcement.key), ...encodeAny(announcement.value)]);
}

/** An operation's reply in the second dialect, which has room for its success and its message alone. */
export function encodeSlimReply(output: ControlOutputInit, answered: Answered): Uint8Array {
  const { success, message } = output as { readonly success?: boolean; readonly message?: string };
  return encodeControlReplySlim({ ...answered, success: success === true, message: message || null });
}

/** The refusal of a call that names no operation of the second dialect, or not with its fields. */
export function encodeSlimRefusal(message: string, answered: Answered): Uint8Array {
  return encodeControlReplySlim({ ...answered, success: false, message });
}
