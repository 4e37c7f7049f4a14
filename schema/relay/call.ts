import { bool, bytes, f64, field, list, nullable, ref, str, struct, u16, u32 } from "../dsl.ts";
import { Failure } from "./failure.ts";
import { EngineLoad } from "./session.ts";

const id = field("id", u32, { doc: "That of the call." });

export const Call = struct("Call", {
  doc: "Asks engines for an operation.",
  layout: "array",
  tagged: true,
  fields: [
    field("id", u32, { doc: "Chosen by the client; free again when the call has completed." }),
    field("request", bytes, { doc: "The encoded request; its tag names the operation." }),
    field("engines", nullable(list(u16)), { default: null, doc: "The engines to ask; nil asks all that the credential allows." }),
    field("timeout_ms", nullable(f64), {
      default: null,
      doc: "How long to wait for all replies, in milliseconds; nil for the operation's own.",
    }),
    field("guard", bool, { default: true, doc: "Whether the relay's guard may refuse the call." }),
    field("release", nullable(str), { default: null, doc: "The release that the request is written for." }),
  ],
});

export const Cancel = struct("Cancel", {
  doc: "Gives a call or a stream up. It completes all the same, with `aborted` unless it was faster.",
  layout: "array",
  tagged: true,
  fields: [id],
});

export const Waiting = struct("Waiting", {
  doc: "A state-changing call waits for one that is under way.",
  layout: "array",
  tagged: true,
  fields: [id, field("holder", str, { doc: "What is under way, and whose it is." })],
});

export const Reply = struct("Reply", {
  doc: "One engine's reply, as soon as it is there.",
  layout: "array",
  tagged: true,
  fields: [
    id,
    field("engine", u16, { doc: "The engine's index." }),
    field("reply", bytes, { doc: "The encoded reply." }),
    field("duration_ms", f64, { doc: "From the request's leaving the relay until the reply was read there, in milliseconds." }),
    field("completed", bool, { default: false, doc: "Whether the call has ended well with it: no `Completed` follows." }),
  ],
});

export const Completed = struct("Completed", {
  doc: "The end of a call: every addressed engine has replied, or the call failed. A last reply may say so by itself.",
  layout: "array",
  tagged: true,
  fields: [
    id,
    field("failure", nullable(ref(Failure)), { default: null, doc: "Why it failed; the replies that did come were sent before." }),
  ],
});

export const Event = struct("Event", {
  doc: "Something that happened outside of a call's own result.",
  layout: "array",
  tagged: true,
  fields: [
    field("type", str, { doc: "As `ConnectionEvent` has it; a client skips types that it does not know." }),
    field("engine", nullable(u16), { default: null, doc: "The engine's index." }),
    field("tag", nullable(str), { default: null, doc: "The tag of the message." }),
    field("late_ms", nullable(f64), { default: null, doc: "How late a late reply is, in milliseconds." }),
    field("request", nullable(bytes), { default: null, doc: "The encoded request of a late or lost reply." }),
    field("reply", nullable(bytes), { default: null, doc: "The encoded late reply." }),
    field("detail", nullable(str), { default: null, doc: "More about it." }),
    field("count", nullable(u32), { default: null, doc: "How many events were dropped because the client read too slowly." }),
    field("failure", nullable(ref(Failure)), { default: null, doc: "The error that it is about." }),
    field("load", nullable(ref(EngineLoad)), { default: null, doc: "The load that it is about." }),
  ],
});
