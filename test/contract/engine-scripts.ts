import { readFileSync } from "node:fs";

/** A rule for the device, as scripts spell it. */
export interface ScriptRule {
  readonly op: string;
  readonly rank?: number;
  readonly times?: number;
  readonly message?: string;
  readonly ms?: number;
}

/** How a script's engines are started. */
export type ScriptFlags = Readonly<Record<string, boolean | number | string | readonly string[] | readonly ScriptRule[]>>;

type To = "all" | readonly number[];

/** What a frontend does. */
export type Step =
  | { readonly send: { readonly op: string; readonly fields?: Readonly<Record<string, unknown>> }; readonly to: To; readonly id: string }
  | { readonly raw: readonly string[]; readonly to: To; readonly id?: string; readonly op?: string }
  | {
      readonly generate: {
        readonly rid: string;
        readonly input_ids: readonly number[];
        readonly max_new_tokens: number;
        readonly sampling?: { readonly stop_token_ids?: readonly number[] };
      };
      readonly to: readonly number[];
    }
  | { readonly abort: readonly string[]; readonly to: readonly number[] }
  | { readonly sleepMs: number }
  | { readonly await: string; readonly from?: readonly number[]; readonly withinMs: number }
  | { readonly awaitNone: string; readonly from?: readonly number[]; readonly forMs: number }
  | { readonly awaitTokens: string; readonly atLeast: number; readonly withinMs: number }
  | { readonly awaitNoTokens: string; readonly forMs: number }
  | { readonly awaitFinish: string; readonly withinMs: number }
  | { readonly expectDead: readonly number[]; readonly withinMs: number }
  | { readonly expectExit: true; readonly withinMs: number };

/** A reply as a script records it. */
export interface RecordedReply {
  readonly tag: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly unfinished: readonly string[];
  readonly device?: boolean;
  readonly messagePattern?: string;
}

/** What became of a request. */
export interface RecordedRequest {
  readonly engine: number;
  readonly finish: string | null;
  readonly details: unknown;
  readonly tokens: number | "some";
  readonly promptTokens?: number;
  readonly cachedTokens?: number;
  readonly contiguous?: boolean;
}

/** What a frontend saw. */
export interface Observed {
  readonly replies: Readonly<Record<string, Readonly<Record<string, RecordedReply | null>>>>;
  readonly order: Readonly<Record<string, readonly string[]>>;
  readonly requests: Readonly<Record<string, RecordedRequest>>;
  readonly checks: readonly Readonly<Record<string, unknown>>[];
  readonly dead: readonly number[];
}

/** One recorded script. */
export interface Script {
  readonly name: string;
  readonly why: string;
  readonly topics: readonly string[];
  readonly ranks: number;
  readonly flags: ScriptFlags;
  readonly needs?: readonly string[];
  readonly steps: readonly Step[];
  readonly observed: Observed;
}

/** The scripts recorded from the real engine's control plane. */
export const scripts: readonly Script[] = JSON.parse(readFileSync(new URL("../vectors/engine-transcripts.json", import.meta.url), "utf8"));

/** An engine process that a script runs against. */
export interface EngineUnderTest {
  /** Resolves once the engine is gone by itself. */
  readonly exited: Promise<void>;
  /** Resolves once all ranks are up. */
  readonly ready: Promise<void>;
  /** Stops it and waits until it is gone. */
  stop(): Promise<void>;
}

/** Starts the engines of a script, which dial `handshake`. */
export type EngineStarter = (handshake: string, ranks: number, flags: ScriptFlags) => EngineUnderTest;
