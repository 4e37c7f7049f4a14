import type { ControlRequest } from "../../generated/tokenspeed/types.ts";
import type { Admission } from "./request.ts";

/** What reached an engine, decoded. */
export type EngineMessage =
  | { readonly kind: "add"; readonly admission: Admission }
  | { readonly kind: "refused"; readonly rid: string; readonly promptTokens: number; readonly message: string }
  | { readonly kind: "abort"; readonly rids: readonly string[] }
  | {
      readonly kind: "control";
      readonly request: ControlRequest;
      /** Which call it is, in the second control dialect. */
      readonly callId?: number;
    }
  /** A call of the second control dialect that is no operation, or lacks what its operation needs. */
  | { readonly kind: "refused_call"; readonly callId: number; readonly method: string; readonly message: string };
