import { batchesOf, type SentBatch } from "./batch-faults.ts";
import { type ControlSettings, Controls } from "./controls.ts";
import { Device, type Tell } from "./device.ts";
import type { EngineMessage } from "./messages.ts";
import { type Admission, abortFinish, type OutputRow, Request } from "./request.ts";
import { RankRules, type Rules } from "./rules.ts";
import { type Batch, Scheduler, type SchedulerSettings } from "./scheduler.ts";

/** How long an abort waits for a request it came before. */
const earlyAbortMs = 300_000;

/** What a rank is made of. */
export interface RankSettings extends ControlSettings, SchedulerSettings {
  readonly model: string;
  readonly needsWeightsGroup: boolean;
  /** Tokens tell which weights gave them; else they are those of the first weights. */
  readonly weightsInTokens: boolean;
  readonly rules: Rules;
}

/** One engine of the group: its requests, its controls, its scheduler and its device. */
export class Rank {
  readonly rank: number;
  readonly controls: Controls;
  readonly device: Device;
  readonly scheduler: Scheduler;
  readonly #weightsInTokens: boolean;
  readonly #tell: Tell;
  readonly #requests = new Map<string, Request>();
  readonly #earlyAborts = new Map<string, number>();
  #withheld: Request[] = [];
  #outputs: OutputRow[] = [];

  constructor(rank: number, settings: RankSettings, tell: Tell) {
    this.rank = rank;
    this.controls = new Controls(settings);
    this.device = new Device(new RankRules(rank, settings.rules), settings.model, settings.needsWeightsGroup, tell);
    this.#weightsInTokens = settings.weightsInTokens;
    this.#tell = tell;
    this.scheduler = new Scheduler(settings);
  }

  /** Requests admitted and not ended, those withheld by a pause included. */
  get numRunning(): number {
    return this.#requests.size;
  }

  /** Takes the outputs of the round so far. */
  takeOutputs(): OutputRow[] {
    const outputs = this.#outputs;
    this.#outputs = [];
    return outputs;
  }

  /** Takes a round's messages in order. A control operation acts after the requests before it are admitted. */
  take(messages: readonly EngineMessage[], now: number, rebalance: () => string | undefined): void {
    let admissions: Admission[] = [];
    for (const message of messages) {
      switch (message.kind) {
        case "add":
          admissions.push(message.admission);
          break;
        case "refused":
          this.#refuse(message);
          break;
        case "abort":
          this.#register(admissions);
          admissions = [];
          for (const rid of message.rids) this.#abort(rid, now);
          break;
        case "control": {
          this.#register(admissions);
          admissions = [];
          const { request, callId } = message;
          const step = this.controls.handle(request, callId, rebalance());
          if (step?.kind === "profile") this.controls.reply({ $tag: "ProfileReqOutput", ...this.device.profile(step.request) }, callId);
          if (step?.kind === "resume") {
            this.device.resume(step.tags);
            this.controls.endResume(step.tags, callId);
          }
          break;
        }
        case "refused_call":
          this.controls.refuse(message.callId, message.message);
      }
    }
    this.#register(admissions);
    for (const [rid, since] of this.#earlyAborts) {
      if (now - since < earlyAbortMs) break;
      this.#earlyAborts.delete(rid);
    }
  }

  /** What a pause that began or ended this round does to requests. */
  applyPause(): void {
    if (this.controls.takeAbortsAll()) for (const request of this.#requests.values()) request.abort(true);
    if (this.controls.paused) return;
    const withheld = this.#withheld;
    this.#withheld = [];
    for (const request of withheld) {
      if (request.finish === null) {
        this.scheduler.submit(request);
        continue;
      }
      this.#requests.delete(request.admission.rid);
      if (request.aborted === "notifying") this.#outputs.push(request.takeOutput());
    }
  }

  /** A planned batch runs, on the weights as they are now. */
  dispatch(batch: Batch): void {
    this.scheduler.dispatch(batch, this.#weightsInTokens ? this.device.weights.updates : 0);
  }

  /** The output batches of a round's rows. */
  batches(rows: readonly OutputRow[]): SentBatch[] {
    return batchesOf(rows, this.device.rules.batches, (fault) => this.#tell("bad_batch", { fault }));
  }

  /** Takes the results of all forwards but the newest `depth`. */
  commit(depth: number, now: number): void {
    const outputs = this.scheduler.commit(depth, now, ({ admission }) => this.#requests.delete(admission.rid));
    this.#outputs.push(...outputs);
  }

  /** Ends a pause or release whose scheduler is empty; `busy` says that gated operations are still queued. */
  finishDrain(now: number, busy: boolean): void {
    const { drain } = this.controls;
    if (drain === undefined || !this.scheduler.empty || this.scheduler.inFlight > 0) return;
    if (drain.kind === "release") {
      if (busy || this.controls.queue.length > 0) return;
      if (drain.tags.includes("kv_cache")) {
        if (!this.scheduler.clearable(now)) return;
        this.scheduler.cache.clear("device");
      }
      this.device.release(drain.tags);
    }
    this.controls.endDrain();
  }

  #register(admissions: readonly Admission[]): void {
    if (admissions.length === 0) return;
    this.device.survive("Admit");
    for (const admission of admissions) {
      const request = new Request(admission);
      if (this.#earlyAborts.delete(admission.rid)) request.abort(false);
      this.#requests.set(admission.rid, request);
      if (this.controls.paused) this.#withheld.push(request);
      else this.scheduler.submit(request);
    }
  }

  #abort(rid: string, now: number): void {
    const request = this.#requests.get(rid);
    if (request === undefined) this.#earlyAborts.set(rid, now);
    else request.abort(false);
  }

  #refuse({ rid, promptTokens, message }: Extract<EngineMessage, { kind: "refused" }>): void {
    this.#earlyAborts.delete(rid);
    const finish = abortFinish(`Invalid request: ${message}`, 400);
    this.#outputs.push({ rid, outputIds: [], promptTokens, completionTokens: 0, cachedTokens: 0, finish });
  }
}
