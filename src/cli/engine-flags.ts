import { type Command, InvalidArgumentError, Option } from "commander";
import { type Rules, ruleRefusal, type SimulatedEngineOptions } from "../testing/index.ts";

/** The flags of `enginewire engine`, as commander hands them over. */
export interface EngineFlags extends SimulatedEngineOptions {
  readonly initTimeoutS: number;
  readonly weightsGroup: boolean;
  readonly logprobs: boolean;
  readonly asReleased: boolean;
  readonly untilStdinCloses: boolean;
  readonly trace: boolean;
  readonly traceOutputs: boolean;
}

type Rule = { readonly op?: string; readonly fault?: string; rank?: number; times?: number; message?: string; ms?: number };

function number(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw new InvalidArgumentError(`${JSON.stringify(text)} is no number`);
  return value;
}

/** Reads `OP[@RANK][#N][=VALUE]`, where a batch fault may stand for OP, behind those read before. */
export function readRule(kind: keyof Rules, text: string, before: readonly Rule[] = []): readonly Rule[] {
  const [, target = "", value] = /^([^=]*)(?:=(.*))?$/s.exec(text) ?? [];
  const [where = "", times] = split(target, "#");
  const [op = "", rank] = split(where, "@");
  if (times !== undefined && !/^\d+$/.test(times)) throw new InvalidArgumentError("#N is a count");
  if (rank !== undefined && !/^\d+$/.test(rank)) throw new InvalidArgumentError("@RANK is a number");
  const refusal = ruleRefusal(kind, op);
  if (refusal !== undefined) throw new InvalidArgumentError(refusal);
  const rule: Rule = kind === "badBatch" ? { fault: op } : { op };
  if (rank !== undefined) rule.rank = Number(rank);
  if (times !== undefined) rule.times = Number(times);
  if (kind === "delayOp" || kind === "lateReply") {
    rule.ms = value === undefined || value === "" ? Number.NaN : Number(value);
    if (!(rule.ms >= 0)) throw new InvalidArgumentError("a delay needs =MS");
  } else if (value !== undefined) {
    rule.message = value;
  }
  return [...before, rule];
}

function split(text: string, mark: string): [string, string | undefined] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

function rule(flags: string, kind: keyof Rules, about: string): Option {
  return new Option(flags, about).argParser((text: string, before: readonly Rule[] | undefined) => readRule(kind, text, before));
}

function count(flags: string, about: string, preset: number): Option {
  return new Option(flags, about).argParser(number).default(preset);
}

/** Adds the flags, which are those of the real engine's stand-in peer, and the dialect. */
export function addEngineFlags(command: Command): Command {
  return command
    .requiredOption("--handshake <address>", "the frontend's handshake socket, such as tcp://127.0.0.1:30500")
    .addOption(count("--index <n>", "index of rank 0 on the wire; rank r has index + r", 0))
    .addOption(count("--ranks <n>", "engines of one attention-DP group", 1))
    .option("--memory-saver", "memory can be released", false)
    .addOption(
      new Option("--memory-regions <list>", "regions the engine can release")
        .argParser((text: string) => text.split(","))
        .default(["kv_cache", "weights"], "kv_cache,weights"),
    )
    .addOption(count("--forward-ms <ms>", "time a forward takes: one token of every running request", 1))
    .addOption(count("--kv-pages <n>", "cache pages of 16 tokens", 512))
    .addOption(count("--max-model-len <n>", "prompt and output together, in tokens", 4096))
    .addOption(count("--max-batch <n>", "requests that run at a time", 8))
    .addOption(new Option("--max-batch-tokens <n>", "tokens of one forward; 256, or --max-batch where that is more").argParser(number))
    .option("--logprobs", "logprobs may be asked for", false)
    .option("--no-weights-in-tokens", "every token is one of the first weights', whatever is loaded")
    .addOption(count("--output-columns <n>", "columns of an output batch: 22, or the 8, 9 or 13 of older engines", 22))
    .option("--host-l2", "a host cache behind the device's", false)
    .addOption(count("--cache-ack-ms <ms>", "a copy to the host cache is acknowledged that late", 0))
    .option("--eplb", "the expert rebalance is on", false)
    .option("--l3-weight-version <version>", "a storage tier is on and publishes under this version")
    .option("--model <name>", "instance_id in the registration", "stand-in")
    .addOption(count("--init-timeout-s <s>", "how long to wait for INIT", 60))
    .option("--no-weights-group", "InitWeightsUpdateGroup is not needed first")
    .option("--no-control", "drop control operations without an answer, as engines before 0.1.0")
    .addOption(
      new Option("--dialect <form>", "of control messages; slim is the SMG gateway's").choices(["tagged", "slim"]).default("tagged"),
    )
    .option("--as-released", "do not stop when the frontend is gone, which the released engine mostly does not notice", false)
    .option("--until-stdin-closes", "stop at the end of stdin", false)
    .option("--trace", "a line per message received and reply sent", false)
    .option("--trace-outputs", "a line per output batch sent", false)
    .addOption(rule("--fail-op <rule>", "failOp", "OP[@RANK][#N][=MESSAGE]: the device refuses OP with MESSAGE"))
    .addOption(rule("--fault-op <rule>", "faultOp", "OP[@RANK][#N][=MESSAGE]: the device breaks under OP and the engines die"))
    .addOption(rule("--crash-op <rule>", "crashOp", "OP[@RANK][#N]: the process dies without ENGINE_CORE_DEAD"))
    .addOption(rule("--delay-op <rule>", "delayOp", "OP[@RANK][#N]=MS: OP takes that long, and the loop stands still"))
    .addOption(rule("--drop-reply <rule>", "dropReply", "OP[@RANK][#N]: OP's reply is not sent"))
    .addOption(rule("--late-reply <rule>", "lateReply", "OP[@RANK][#N]=MS: OP's reply leaves that late, and the loop goes on"))
    .addOption(rule("--duplicate-reply <rule>", "duplicateReply", "OP[@RANK][#N]: OP's reply is sent twice"))
    .addOption(rule("--bad-batch <rule>", "badBatch", "FAULT[@RANK][#N]: an output batch goes wrong"));
}

/** The engine that flags describe. */
export function engineOptionsOf(flags: EngineFlags): SimulatedEngineOptions {
  const { initTimeoutS, weightsGroup, logprobs, asReleased, untilStdinCloses, trace, traceOutputs, ...options } = flags;
  return {
    ...options,
    initTimeoutMs: initTimeoutS * 1000,
    needsWeightsGroup: weightsGroup,
    outputLogprobs: logprobs,
    stopsWithFrontend: !asReleased,
  };
}

/** What stands below the flags in `--help`. */
export const engineHelp = `
Each rule may be given several times. OP is an operation's name, such as UpdateWeightFromDisk, or Forward, or Admit. A rule
applies on its rank, else on every one, and the first N times, else always. FAULT is unequal-columns,
unknown-rid or after-finish. The token at position k of a request is 1000 + k, plus 100000 for every load of weights.

Lines on stdout are JSON objects with an "event"; wait for "all_ready". SIGTERM and SIGINT stop the engine, which says
ENGINE_CORE_DEAD; so does the loss of the frontend. The last line is the "exit" event: asked and frontend_lost exit with 0,
error and forced with 1, bad flags with 2.`;
