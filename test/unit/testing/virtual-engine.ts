import type { ControlOutputInit, ControlRequest } from "../../../generated/tokenspeed/types.ts";
import { type Effect, Group } from "../../../src/testing/group.ts";
import type { EngineMessage } from "../../../src/testing/messages.ts";
import { type SimulatedEngineOptions, settingsOf } from "../../../src/testing/options.ts";
import type { Admission, OutputRow } from "../../../src/testing/request.ts";

/** A group without sockets, in virtual time: a test says when rounds run and reads what they did. */
export class VirtualEngine {
  readonly group: Group;
  /** Milliseconds since the start. */
  now = 0;
  readonly told: Record<string, unknown>[] = [];

  constructor(options: Omit<SimulatedEngineOptions, "handshake"> = {}) {
    const settings = settingsOf({ handshake: "tcp://nowhere:1", ...options });
    this.group = new Group(
      settings,
      () => this.now,
      (rank, event, fields) => this.told.push({ rank, event, ...fields }),
    );
  }

  /** One round with these messages by rank; returns its effects with the waits taken. */
  round(...messages: (readonly EngineMessage[])[]): Exclude<Effect, { kind: "wait" }>[] {
    const effects: Exclude<Effect, { kind: "wait" }>[] = [];
    for (const effect of this.group.round(messages)) {
      if (effect.kind === "wait") this.now += effect.ms;
      else effects.push(effect);
    }
    return effects;
  }

  /** Rounds until none has anything to do; returns all effects. */
  settle(...messages: (readonly EngineMessage[])[]): Exclude<Effect, { kind: "wait" }>[] {
    const effects = this.round(...messages);
    for (let rounds = 0; rounds < 10_000; rounds += 1) {
      const ms = this.group.nextRoundMs;
      if (ms === undefined) return effects;
      this.now += ms;
      effects.push(...this.round());
    }
    throw new Error("it never settles");
  }
}

/** A control operation as a message; fields not given are at their defaults. */
export function control($tag: ControlRequest["$tag"], fields: object = {}): EngineMessage {
  return { kind: "control", request: { $tag, rid: null, httpWorkerIpc: null, ...defaults[$tag], ...fields } as ControlRequest };
}

const defaults: Partial<Record<ControlRequest["$tag"], object>> = {
  PauseSchedulerReqInput: { mode: "abort" },
  ReleaseMemoryOccupationReqInput: { tags: null },
  ResumeMemoryOccupationReqInput: { tags: null },
  UpdateWeightFromDiskReqInput: { modelPath: "/ckpt", loadFormat: null, weightVersion: null, flushCache: true },
  UpdateWeightsFromMooncakeReqInput: { version: 7, flushCache: true, weightVersion: null },
  InitWeightsUpdateGroupReqInput: { groupName: "weight_update_group" },
};

/** A request as a message; a prompt given as a number counts up from 1. */
export function add(rid: string, given: number | readonly number[], maxNewTokens: number, more: Partial<Admission> = {}): EngineMessage {
  const prompt = typeof given === "number" ? Array.from({ length: given }, (_, index) => index + 1) : given;
  return {
    kind: "add",
    admission: { rid, prompt, maxNewTokens, minNewTokens: 0, stopTokenIds: [], stream: true, streamInterval: null, ...more },
  };
}

/** The replies among effects, short: what tells them apart. */
export function replies(effects: readonly Effect[]): [rank: number, tag: string, ...said: unknown[]][] {
  return effects.flatMap((effect) => {
    if (effect.kind !== "reply" || effect.reply instanceof Uint8Array) return [];
    const { $tag, ...fields } = effect.reply as ControlOutputInit & Record<string, unknown>;
    return [[effect.rank, $tag.replace("ReqOutput", ""), ...Object.values(fields)] as [number, string, ...unknown[]]];
  });
}

/** The output rows among effects. */
export function rows(effects: readonly Effect[]): OutputRow[] {
  return effects.flatMap((effect) => (effect.kind === "outputs" ? [...effect.rows] : []));
}
