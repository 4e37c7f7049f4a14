import { any, bool, field, map, operation, struct } from "../dsl.ts";
import { BaseReq } from "./base.ts";

export const GetInternalStateReq = struct("GetInternalStateReq", {
  doc: "Ask for the engine's internal state.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [],
});
export const GetInternalStateReqOutput = struct("GetInternalStateReqOutput", {
  doc: "The engine's internal state.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [field("internal_state", map(any), { doc: "Whatever the engine reports; release 0.1.0 reports an empty map." })],
});
export const getInternalState = operation("getInternalState", {
  request: GetInternalStateReq,
  reply: GetInternalStateReqOutput,
  effect: "read",
  answers: "at once",
  timeoutMs: 60_000,
  repeatable: true,
  since: "0.1.0",
  summary: "Read the engine's internal state",
  doc: "For diagnosis; release 0.1.0 always answers with an empty map.",
});

export const SetInternalStateReq = struct("SetInternalStateReq", {
  doc: "Change server arguments of a running engine.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [field("server_args", map(any), { doc: "Arguments to change, by name." })],
});
export const SetInternalStateReqOutput = struct("SetInternalStateReqOutput", {
  doc: "What became of the change.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [
    field("updated", bool, { doc: "Whether anything changed; false in release 0.1.0." }),
    field("server_args", map(any), { doc: "The arguments now in force; empty in release 0.1.0." }),
  ],
});
export const setInternalState = operation("setInternalState", {
  request: SetInternalStateReq,
  reply: SetInternalStateReqOutput,
  effect: "admission",
  answers: "at once",
  timeoutMs: 60_000,
  repeatable: true,
  since: "0.1.0",
  summary: "Change server arguments",
  doc: "Release 0.1.0 answers `updated` false and changes nothing.",
});
