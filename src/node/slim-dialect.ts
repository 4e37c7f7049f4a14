import type { Operation } from "../../generated/tokenspeed/operations.ts";
import {
  type ControlOutput,
  type ControlOutputInit,
  type ControlRequestInit,
  decodeControlOutput,
  decodeControlReplySlim,
  decodeControlRequest,
  encodeControlCallSlim,
  encodeControlOutput,
} from "../messages.ts";
import { decodeAny } from "../wire/index.ts";

/** Whether a registration announces the second control dialect. Never throws. */
export function announcesSlim(registration: Uint8Array): boolean {
  try {
    const { positional_layouts: layouts } = decodeAny(registration) as { positional_layouts?: unknown };
    return typeof layouts === "object" && layouts !== null && "ControlReplySlim" in layouts;
  } catch {
    return false;
  }
}

/**
 * The second control dialect towards one engine: `[call_id, method, args]` out, `["ControlReplySlim", call_id, ...]` back.
 * It is put on and taken off here, so that lanes and callers only see the operations' own requests and replies.
 */
export class SlimDialect {
  #nextCall = 1;
  /** The last call of each reply tag. */
  readonly #calls = new Map<string, { readonly id: number; readonly operation: Operation }>();

  /** Encodes a request that has been encoded in the first dialect, so it is valid and its defaults are in it. */
  encode(operation: Operation, encoded: Uint8Array): Uint8Array {
    const id = this.#nextCall++;
    this.#calls.set(operation.reply, { id, operation });
    return encodeControlCallSlim({ callId: id, ...methodOf(operation, decodeControlRequest(encoded)) });
  }

  /** Decodes a reply into the operation's own, or `undefined` when it answers no call that is the last of its kind. */
  decode(frame: Uint8Array): ControlOutput | undefined {
    const { callId, success, message } = decodeControlReplySlim(frame);
    for (const [tag, { id, operation }] of this.#calls) {
      if (id !== callId) continue;
      this.#calls.delete(tag);
      const said: Readonly<Record<string, unknown>> = { success, message: message ?? "" };
      const own = Object.fromEntries((operation.slim?.reply ?? []).map((property) => [property, said[property]]));
      return decodeControlOutput(encodeControlOutput({ $tag: tag, ...own } as ControlOutputInit));
    }
    return undefined;
  }
}

function methodOf({ slim, name }: Operation, request: ControlRequestInit): { readonly method: string; readonly args: readonly unknown[] } {
  // by property name, as the table of arguments has them
  const values = request as unknown as Readonly<Record<string, unknown>>;
  const choice = slim?.choice;
  if (choice !== undefined && values[choice.property] !== choice.value) return { method: choice.otherwise, args: [] };
  const args: Record<string, unknown> = {};
  for (const [property, key] of Object.entries(slim?.arguments ?? {})) {
    // that dialect leaves out what is not set
    if (values[property] !== null) args[key] = values[property];
  }
  return { method: slim?.method ?? name, args: Object.keys(args).length === 0 ? [] : [args] };
}
