import { bool, field, literal, operation, str, struct } from "../dsl.ts";
import { BaseReq } from "./base.ts";

export const FlushCacheReqInput = struct("FlushCacheReqInput", {
  doc: "Drop the prefix caches.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [],
});
export const FlushCacheReqOutput = struct("FlushCacheReqOutput", {
  doc: "Whether the prefix caches were dropped.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [field("success", bool, { doc: "False when requests or pending Host copies still pin cache pages; nothing was dropped then." })],
});
export const flushCache = operation("flushCache", {
  request: FlushCacheReqInput,
  reply: FlushCacheReqOutput,
  effect: "memory",
  answers: "at once",
  timeoutMs: 60_000,
  repeatable: true,
  since: "0.1.0",
  slim: { method: "flush_cache" },
  summary: "Drop the prefix caches",
  doc: "Succeeds only on an engine without running requests, and only when every engine of the group can: drain with a pause first. Sent to one engine it flushes all, and only that one answers.",
});

export const PauseSchedulerReqInput = struct("PauseSchedulerReqInput", {
  doc: "Stop scheduling new requests.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [
    field("mode", literal("abort", "wait", "keep"), {
      default: "abort",
      doc: "What happens to running requests: `abort` ends them, `wait` lets them finish, `keep` freezes them where they are.",
    }),
  ],
});
export const PauseSchedulerReqOutput = struct("PauseSchedulerReqOutput", {
  doc: "The engine paused, or why not.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [
    field("success", bool, { doc: "Whether the engine is paused and, except for `keep`, drained." }),
    field("message", str, { default: "", doc: "Why not; empty on success." }),
  ],
});
export const pauseScheduler = operation("pauseScheduler", {
  request: PauseSchedulerReqInput,
  reply: PauseSchedulerReqOutput,
  effect: "admission",
  answers: "drained",
  timeoutMs: 600_000,
  repeatable: true,
  since: "0.1.0",
  slim: { method: "pause_generation" },
  summary: "Pause the scheduler",
  doc: "Modes `abort` and `wait` answer when the engine has drained, each engine when it did; `keep` answers at once. Requests that arrive meanwhile are held and admitted on resume. Refused while another pause or a release drains.",
});

export const ResumeSchedulerReqInput = struct("ResumeSchedulerReqInput", {
  doc: "Schedule requests again.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [],
});
export const ResumeSchedulerReqOutput = struct("ResumeSchedulerReqOutput", {
  doc: "The engine schedules again, or why not.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [
    field("success", bool, { doc: "Whether the engine schedules requests." }),
    field("message", str, { default: "", doc: "Why not; empty on success." }),
  ],
});
export const resumeScheduler = operation("resumeScheduler", {
  request: ResumeSchedulerReqInput,
  reply: ResumeSchedulerReqOutput,
  effect: "admission",
  answers: "at once",
  timeoutMs: 60_000,
  repeatable: true,
  since: "0.1.0",
  slim: { method: "continue_generation" },
  endsDrain: true,
  summary: "Resume the scheduler",
  doc: "Succeeds on an engine that runs already. A pause or release that still drains fails with `resumed before ... drained`. Refused while memory is released.",
});

export const IsSchedulerPausedReqInput = struct("IsSchedulerPausedReqInput", {
  doc: "Ask whether the scheduler is paused.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [],
});
export const IsSchedulerPausedReqOutput = struct("IsSchedulerPausedReqOutput", {
  doc: "Whether the scheduler is paused.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [field("is_paused", bool, { doc: "True in every state but running, also while a pause drains and while memory is released." })],
});
export const isSchedulerPaused = operation("isSchedulerPaused", {
  request: IsSchedulerPausedReqInput,
  reply: IsSchedulerPausedReqOutput,
  effect: "read",
  answers: "at once",
  timeoutMs: 60_000,
  repeatable: true,
  since: "0.1.0",
  summary: "Ask whether the scheduler is paused",
  doc: "Never fails. Paused does not mean drained: only the pause's own success proves that.",
});
