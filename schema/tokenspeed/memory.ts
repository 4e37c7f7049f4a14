import { bool, field, list, nullable, operation, str, struct } from "../dsl.ts";
import { BaseReq } from "./base.ts";

const unknownRegion = {
  field: "tags",
  when: "an item is not one of",
  values: ["kv_cache", "weights", "cuda_graph", "nccl"],
  because: "release 0.1.0 has no such memory region and refuses the whole call",
} as const;
const outcome = [
  field("success", bool, { default: true, doc: "Whether the operation took effect." }),
  field("message", str, { default: "", doc: "Why not; empty on success." }),
];

export const ReleaseMemoryOccupationReqInput = struct("ReleaseMemoryOccupationReqInput", {
  doc: "Give device memory back.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [
    field("tags", nullable(list(str)), {
      default: null,
      doc: "Memory regions (`kv_cache`, `weights`, `cuda_graph`, `nccl`); nil for all that this engine can release.",
    }),
  ],
});
export const ReleaseMemoryOccupationReqOutput = struct("ReleaseMemoryOccupationReqOutput", {
  doc: "The memory was released, or why not.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: outcome,
});
export const releaseMemoryOccupation = operation("releaseMemoryOccupation", {
  request: ReleaseMemoryOccupationReqInput,
  reply: ReleaseMemoryOccupationReqOutput,
  effect: "memory",
  answers: "drained",
  timeoutMs: 600_000,
  repeatable: false,
  since: "0.1.0",
  slim: { method: "release_memory_occupation" },
  summary: "Release device memory",
  doc: "Drains like a pause with `wait`, then frees; the engine sleeps until the memory is resumed. Weights are kept on the host and restored. Releasing a released region is an error.",
  refuses: [
    {
      field: "tags",
      when: "empty",
      because: "an empty list releases nothing, yet drains the engine and leaves it frozen; leave `tags` out to release all regions",
    },
    unknownRegion,
  ],
});

export const ResumeMemoryOccupationReqInput = struct("ResumeMemoryOccupationReqInput", {
  doc: "Take device memory again.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [field("tags", nullable(list(str)), { default: null, doc: "Memory regions to restore; nil for exactly what is released." })],
});
export const ResumeMemoryOccupationReqOutput = struct("ResumeMemoryOccupationReqOutput", {
  doc: "The memory was restored, or why not.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: outcome,
});
export const resumeMemoryOccupation = operation("resumeMemoryOccupation", {
  request: ResumeMemoryOccupationReqInput,
  reply: ResumeMemoryOccupationReqOutput,
  effect: "memory",
  answers: "at once",
  timeoutMs: 120_000,
  repeatable: false,
  since: "0.1.0",
  slim: { method: "resume_memory_occupation" },
  summary: "Restore released device memory",
  doc: "Restoring the last region also ends a pause that was made before the release. Never send it while a release or a pause drains.",
  refuses: [
    {
      field: "tags",
      when: "empty",
      because: "an empty list restores nothing and still answers success; leave `tags` out to restore everything released",
    },
    unknownRegion,
  ],
});

export const IsSleepingReqInput = struct("IsSleepingReqInput", {
  doc: "Ask whether memory is released.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [],
});
export const IsSleepingReqOutput = struct("IsSleepingReqOutput", {
  doc: "Whether memory is released.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [field("is_sleeping", bool, { doc: "True while any region is released; false while a release still drains." })],
});
export const isSleeping = operation("isSleeping", {
  request: IsSleepingReqInput,
  reply: IsSleepingReqOutput,
  effect: "read",
  answers: "at once",
  timeoutMs: 60_000,
  repeatable: true,
  since: "0.1.0",
  summary: "Ask whether memory is released",
  doc: "Never fails.",
});
