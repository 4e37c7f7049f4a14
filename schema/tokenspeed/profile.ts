import { bool, constant, field, i64, list, literal, nullable, operation, str, struct } from "../dsl.ts";
import { BaseReq } from "./base.ts";

export const PROFILE_START = constant("PROFILE_START", 1, "`kind` of a request that starts the profiler.");
export const PROFILE_STOP = constant("PROFILE_STOP", 2, "`kind` of a request that stops the profiler and writes the traces.");

export const ProfileReq = struct("ProfileReq", {
  doc: "Start or stop the profiler.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [
    field("kind", literal(1, 2), { python: "type", doc: "`PROFILE_START` (1) or `PROFILE_STOP` (2)." }),
    field("output_dir", nullable(str), { default: null, doc: "Folder for traces on the engine's host; nil for the engine's own." }),
    field("start_step", nullable(i64), { default: null, doc: "Forward step at which profiling begins; nil for now." }),
    field("num_steps", nullable(i64), { default: null, doc: "Forward steps to profile before it stops by itself; nil until stopped." }),
    field("activities", nullable(list(str)), { default: null, doc: "What is traced, such as `CPU`, `GPU`, `MEM`; nil for CPU and GPU." }),
    field("profile_by_stage", bool, { default: false, doc: "Whether prefill and decode are traced apart; needs `num_steps`." }),
    field("with_stack", nullable(bool), { default: null, doc: "Whether stacks are recorded; nil means yes." }),
    field("record_shapes", nullable(bool), { default: null, doc: "Whether tensor shapes are recorded; nil means no." }),
    field("profile_id", nullable(str), { default: null, doc: "First part of the trace files' names." }),
  ],
});
export const ProfileReqOutput = struct("ProfileReqOutput", {
  doc: "The profiler started or stopped, or why not.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [
    field("success", bool, { doc: "Whether the profiler did as asked." }),
    field("message", str, { doc: "What the engine says about it." }),
  ],
});
export const profile = operation("profile", {
  request: ProfileReq,
  reply: ProfileReqOutput,
  effect: "profile",
  answers: "at once",
  timeoutMs: 1_200_000,
  repeatable: false,
  since: "0.1.0",
  slim: { method: "start_profile", choice: { field: "kind", value: 1, otherwise: "stop_profile" } },
  summary: "Start or stop the profiler",
  refuses: [
    {
      field: "profile_by_stage",
      when: "set without",
      other: "num_steps",
      because: "the scheduler ends at the next batch: stages are counted against num_steps",
    },
    { field: "num_steps", when: "below", limit: 1, because: "the profile would stop before it began" },
    { field: "start_step", when: "below", limit: 0, because: "steps count from 0" },
    {
      field: "activities",
      when: "an item is not one of",
      values: ["CPU", "GPU", "MEM", "CUDA_PROFILER", "VIZTRACER", "PROTON", "EXPERT_LOAD"],
      because: "the profiler has no such activity",
    },
    { field: "activities", when: "empty", because: "nothing would be traced; leave it out for CPU and GPU" },
  ],
  doc: "A stop answers after the traces are written, which can take minutes; the engine serves nothing meanwhile.",
});
