import { any, bool, field, i64, list, nullable, str, struct } from "../dsl.ts";

// The second control dialect on the same type byte, that of the SMG gateway of 27 October 2026. An engine that
// speaks it says so in its registration: `positional_layouts` has the key `ControlReplySlim`.

export const ControlCallSlim = struct("ControlCallSlim", {
  doc: "A control call in the dialect of the SMG gateway.",
  layout: "array",
  definedIn: "the SMG gateway",
  fields: [
    field("call_id", i64, { doc: "Chosen by the frontend; the reply names it." }),
    field("method", str, { doc: "Last segment of the gateway's HTTP path, such as `pause_generation`." }),
    field("args", list(any), { doc: "Empty, or one map of the call's fields." }),
  ],
});

export const ControlReplySlim = struct("ControlReplySlim", {
  doc: "The reply to a control call in the dialect of the SMG gateway.",
  layout: "array",
  definedIn: "the SMG gateway",
  tagged: true,
  fields: [
    field("call_id", i64, { doc: "That of the call." }),
    field("success", bool, { doc: "Whether the call took effect." }),
    field("message", nullable(str), { doc: "What the engine says about it." }),
    field("engine_index", nullable(i64), { default: null, doc: "Which engine answers." }),
  ],
});
