import type { ControlOutputInit, EngineCoreReadyResponseInit } from "../../generated/tokenspeed/types.ts";
import type { BatchFault } from "./batch-faults.ts";
import type { EngineMessage } from "./messages.ts";
import type { OutputRow } from "./request.ts";

/** How an engine ended. */
export type EngineEnd = "asked" | "frontend_lost" | "error" | "crashed" | "killed";

/** Something that happened in a simulated engine. */
export type EngineEvent =
  | { readonly event: "connecting"; readonly rank: number; readonly index: number; readonly handshake: string }
  | {
      readonly event: "ready";
      readonly rank: number;
      readonly index: number;
      readonly registration: EngineCoreReadyResponseInit | Uint8Array;
    }
  | { readonly event: "all_ready"; readonly ranks: number }
  | { readonly event: "received"; readonly rank: number; readonly message: EngineMessage }
  | { readonly event: "dropped"; readonly rank: number; readonly frames: number; readonly reason: string }
  | {
      readonly event: "replied";
      readonly rank: number;
      readonly reply: ControlOutputInit | Uint8Array;
      /** The call that it answers, in the second control dialect. */
      readonly callId?: number;
    }
  | { readonly event: "reply_dropped"; readonly rank: number; readonly reply: ControlOutputInit }
  | { readonly event: "outputs"; readonly rank: number; readonly rows: readonly OutputRow[] }
  | { readonly event: "bad_batch"; readonly rank: number; readonly fault: BatchFault }
  | { readonly event: "device"; readonly rank: number; readonly op: string; readonly [field: string]: unknown }
  | { readonly event: "delay"; readonly rank: number; readonly op: string; readonly ms: number }
  | { readonly event: "crash"; readonly rank: number; readonly op: string }
  | { readonly event: "frontend_lost"; readonly rank: number }
  | { readonly event: "stopped"; readonly rank: number }
  | { readonly event: "error"; readonly rank: number; readonly error: string }
  | { readonly event: "ended"; readonly reason: EngineEnd };
