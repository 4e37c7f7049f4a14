import type { ControlOutputInit } from "../../generated/tokenspeed/types.ts";
import { EngineWireError } from "../wire/errors.ts";
import { type BatchRule, batchFaultRefusal, RankBatchRules } from "./batch-faults.ts";
import { operationNames } from "./operation-names.ts";

/** Where and how often something is made to happen. */
export interface Occasion {
  /** An operation by its name on the wire (`UpdateWeightFromDisk`), or `Forward`, or `Admit`. */
  readonly op: string;
  /** The one rank it happens on; absent means every rank. */
  readonly rank?: number;
  /** How often it happens on each of its ranks; absent means always. */
  readonly times?: number;
}

/** An occasion with a text. */
export interface MessageRule extends Occasion {
  /** What the device says. */
  readonly message?: string;
}

/** An occasion with a time. */
export interface DelayRule extends Occasion {
  /** Milliseconds. */
  readonly ms: number;
}

/** An occasion with another reply in place of the right one. */
export interface WrongReplyRule extends Occasion {
  /** What is sent instead: a reply of any operation, in the first control dialect, or a raw frame. */
  readonly reply: ControlOutputInit | Uint8Array;
}

/** Everything that can be made to go wrong while an engine serves. */
export interface Rules {
  /** The device refuses the operation with `message`. */
  readonly failOp?: readonly MessageRule[];
  /** The device breaks under the operation: every rank ends with ENGINE_CORE_DEAD. */
  readonly faultOp?: readonly MessageRule[];
  /** The engine vanishes under the operation, without ENGINE_CORE_DEAD. */
  readonly crashOp?: readonly Occasion[];
  /** The operation takes `ms`; the whole group's loop stands still meanwhile. */
  readonly delayOp?: readonly DelayRule[];
  /** The operation takes effect and its reply is never sent. */
  readonly dropReply?: readonly Occasion[];
  /** The reply leaves `ms` late while the engine goes on, as it may behind a slow network. */
  readonly lateReply?: readonly DelayRule[];
  /** The reply is sent twice. */
  readonly duplicateReply?: readonly Occasion[];
  /** Another frame is sent in place of the reply. */
  readonly wrongReply?: readonly WrongReplyRule[];
  /** An output batch is malformed, or has rows it should not have. */
  readonly badBatch?: readonly BatchRule[];
}

/** What becomes of an operation besides its delay. */
export type Twist =
  | { readonly kind: "fail"; readonly message: string }
  | { readonly kind: "fault"; readonly message: string }
  | { readonly kind: "crash" }
  | { readonly kind: "drop" }
  | { readonly kind: "late"; readonly ms: number }
  | { readonly kind: "twice" }
  | { readonly kind: "wrong"; readonly reply: ControlOutputInit | Uint8Array };

/** Where a rule applies: as the device runs the operation, or as its reply leaves the loop. */
export type Stage = "device" | "reply";

/** A rule of one rank, with how often it still applies. */
interface Applying {
  readonly op: string;
  readonly stage: Stage;
  readonly twist: Twist | undefined;
  readonly delayMs: number;
  left: number;
}

const kinds = ["failOp", "faultOp", "crashOp", "delayOp", "dropReply", "lateReply", "duplicateReply", "wrongReply"] as const;

/** The kinds of rules that are about an operation, a forward or an admission. */
type OperationRules = (typeof kinds)[number];

const deviceAnswers: readonly string[] = [
  "InitWeightsUpdateGroup",
  "UpdateWeightsFromDistributed",
  "DestroyWeightsUpdateGroup",
  "UpdateWeightsFromMooncake",
  "UpdateWeightFromDisk",
  "Profile",
];
const deviceRuns: readonly string[] = ["ReleaseMemoryOccupation", "ResumeMemoryOccupation", "Forward", "Admit"];

/** Why a rule cannot be, in the words of the real peer, or `undefined`. */
export function ruleRefusal(kind: keyof Rules, op: string): string | undefined {
  if (kind === "badBatch") return batchFaultRefusal(op);
  const answers = deviceAnswers.includes(op);
  const runs = deviceRuns.includes(op);
  if (!answers && !runs && !operationNames.includes(op)) return "no operation has this name";
  if (kind === "failOp" && !answers) return "the device does not decide its outcome";
  if (kind === "faultOp" && !answers && !runs) return "it does not reach the device";
  const concernsReply = kind === "dropReply" || kind === "lateReply" || kind === "duplicateReply" || kind === "wrongReply";
  if (concernsReply && (op === "Forward" || op === "Admit")) return "it has no reply";
  return undefined;
}

function twistOf(kind: OperationRules, rule: MessageRule & Partial<DelayRule> & Partial<WrongReplyRule>): Twist | undefined {
  switch (kind) {
    case "failOp":
      return { kind: "fail", message: rule.message ?? "the stand-in device was told to fail" };
    case "faultOp":
      return { kind: "fault", message: rule.message ?? "the stand-in device was told to break" };
    case "crashOp":
      return { kind: "crash" };
    case "dropReply":
      return { kind: "drop" };
    case "lateReply":
      return { kind: "late", ms: rule.ms ?? 0 };
    case "duplicateReply":
      return { kind: "twice" };
    case "wrongReply":
      return { kind: "wrong", reply: rule.reply ?? new Uint8Array() };
    case "delayOp":
      return undefined;
  }
}

/** The rules that apply on one rank. */
export class RankRules {
  readonly #rank: number;
  readonly #rules: Applying[] = [];
  /** Those for output batches. */
  readonly batches: RankBatchRules;

  constructor(rank: number, rules: Rules) {
    this.#rank = rank;
    this.batches = new RankBatchRules(rank);
    this.add(rules);
  }

  /** Adds those rules that are for this rank. Throws `invalid_argument` for one that could never apply. */
  add(rules: Rules): void {
    this.batches.add(rules.badBatch ?? []);
    for (const kind of kinds) {
      for (const rule of rules[kind] ?? []) {
        const refusal = ruleRefusal(kind, rule.op);
        if (refusal !== undefined) throw new EngineWireError("invalid_argument", `${kind} ${rule.op}: ${refusal}`, { found: rule.op });
        const delayMs = kind === "delayOp" ? (rule as DelayRule).ms : 0;
        if (!(delayMs >= 0))
          throw new EngineWireError("invalid_argument", `${kind} ${rule.op}: a delay needs ms`, { found: String(delayMs) });
        if (rule.rank !== undefined && rule.rank !== this.#rank) continue;
        const twist = twistOf(kind, rule);
        const onDevice = twist === undefined || twist.kind === "fail" || twist.kind === "fault" || twist.kind === "crash";
        const stage = onDevice && (deviceAnswers.includes(rule.op) || deviceRuns.includes(rule.op)) ? "device" : "reply";
        this.#rules.push({ op: rule.op, stage, twist, delayMs, left: rule.times ?? Number.POSITIVE_INFINITY });
      }
    }
  }

  /** Counts an occasion of `op` and says how long it takes and how it goes; the last of several rules decides. */
  meet(op: string, stage: Stage): { readonly delayMs: number; readonly twist: Twist | undefined } {
    let delayMs = 0;
    let twist: Twist | undefined;
    for (const rule of this.#rules) {
      if (rule.op !== op || rule.stage !== stage || rule.left <= 0) continue;
      rule.left -= 1;
      delayMs += rule.delayMs;
      twist = rule.twist ?? twist;
    }
    return { delayMs, twist };
  }
}
