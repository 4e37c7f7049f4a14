import type { EngineCoreReadyResponseInit } from "../../generated/tokenspeed/types.ts";
import type { ControlDialect } from "../transport/capabilities.ts";
import { EngineWireError } from "../wire/errors.ts";
import type { EngineEvent } from "./events.ts";
import type { GroupSettings } from "./group.ts";
import type { HandshakeFault } from "./handshake.ts";
import { memoryRegions } from "./memory.ts";
import { type ColumnCount, columnCounts } from "./output-batch.ts";
import { pageTokens } from "./prefix.ts";
import type { Rules } from "./rules.ts";

/** How a simulated engine is started. Its rules (`failOp`, `delayOp`, ...) stand beside its other options. */
export interface SimulatedEngineOptions extends Rules {
  /** Address of the frontend's handshake socket, such as `tcp://127.0.0.1:30500`. */
  readonly handshake: string;
  /** Index of rank 0 on the wire; rank r has `index + r`. 0 by default. */
  readonly index?: number;
  /** Engines of one attention-DP group. 1 by default. */
  readonly ranks?: number;
  /** Memory can be released. False by default. */
  readonly memorySaver?: boolean;
  /** The regions that can be released. `["kv_cache", "weights"]` by default. */
  readonly memoryRegions?: readonly string[];
  /** Milliseconds a forward takes, that is, one token of every running request. 1 by default. */
  readonly forwardMs?: number;
  /** Prompt and output together. 4096 by default. */
  readonly maxModelLen?: number;
  /** Requests that run at a time. 8 by default. */
  readonly maxBatch?: number;
  /** Tokens of one forward, prompts and outputs together. 256 by default, or `maxBatch` where that is more. */
  readonly maxBatchTokens?: number;
  /** Cache pages of 16 tokens. 512 by default. */
  readonly kvPages?: number;
  /** Logprobs may be asked for, as with the engine's `--enable-output-logprobs`; else such a request is refused. False by default. */
  readonly outputLogprobs?: boolean;
  /**
   * Tokens tell which weights gave them, see `tokenOf`. True by default. With false they are those of the first weights,
   * whatever is loaded, as in the scripts recorded from the real engine.
   */
  readonly weightsInTokens?: boolean;
  /** Columns of an output batch: 22, or the 8, 9 or 13 that older engines stop after. 22 by default. */
  readonly outputColumns?: ColumnCount;
  /** The expert rebalance is on. False by default. */
  readonly eplb?: boolean;
  /** A storage tier is on and publishes under this version. Off by default. */
  readonly l3WeightVersion?: string;
  /** A host cache stands behind the device's. False by default. */
  readonly hostL2?: boolean;
  /** Milliseconds until a copy to the host cache is acknowledged. 0 by default. */
  readonly cacheAckMs?: number;
  /** `instance_id` of the registration; also what the weights start from. `"stand-in"` by default. */
  readonly model?: string;
  /** Whether a distributed update needs `InitWeightsUpdateGroup` first. True by default. */
  readonly needsWeightsGroup?: boolean;
  /** Whether it understands control operations; engines before 0.1.0 drop them without an answer. True by default. */
  readonly control?: boolean;
  /**
   * The form of control messages: `tagged`, or `slim` for that of the SMG gateway, which the registration then announces.
   * `tagged` by default. An engine drops what is in the other one.
   */
  readonly dialect?: ControlDialect;
  /** Milliseconds to wait for INIT. 60000 by default. */
  readonly initTimeoutMs?: number;
  /** Stops when the frontend closes its sockets; the released engine mostly does not notice that. False by default. */
  readonly stopsWithFrontend?: boolean;
  /** Registration fields in place of the right ones, or the payload of a registration frame. */
  readonly registration?: Partial<EngineCoreReadyResponseInit> | Uint8Array;
  /** Something wrong in the handshake, on every rank or on one. */
  readonly handshakeFault?: HandshakeFault;
  /** Hears what happens inside; nothing is ever printed. */
  readonly onEvent?: (event: EngineEvent) => void;
  /** Ends the start while it waits for the frontend. */
  readonly signal?: AbortSignal;
}

/** The options with their defaults. */
export interface Settings extends GroupSettings {
  readonly handshake: string;
  readonly index: number;
  readonly maxModelLen: number;
  readonly outputLogprobs: boolean;
  readonly outputColumns: ColumnCount;
  readonly control: boolean;
  readonly dialect: ControlDialect;
  readonly initTimeoutMs: number;
  readonly stopsWithFrontend: boolean;
}

function whole(name: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new EngineWireError("invalid_argument", `${name} is a whole number from ${least} to ${most}, not ${value}`, {
    found: String(value),
  });
}

function milliseconds(name: string, value: number): number {
  if (Number.isFinite(value) && value >= 0) return value;
  throw new EngineWireError("invalid_argument", `${name} is a number of milliseconds, not ${value}`, { found: String(value) });
}

function dialectOf(dialect: ControlDialect): ControlDialect {
  if (dialect === "tagged" || dialect === "slim") return dialect;
  throw new EngineWireError("invalid_argument", `dialect is "tagged" or "slim", not ${JSON.stringify(dialect)}`, {
    found: String(dialect),
  });
}

function columnsOf(columns: ColumnCount): ColumnCount {
  if (columnCounts.includes(columns)) return columns;
  throw new EngineWireError("invalid_argument", `outputColumns is one of ${columnCounts.join(", ")}, not ${columns}`, {
    found: String(columns),
  });
}

/** Fills in the defaults. Throws `invalid_argument` for a value no engine could have. */
export function settingsOf(options: SimulatedEngineOptions): Settings {
  if (typeof options.handshake !== "string" || options.handshake === "") {
    throw new EngineWireError("invalid_argument", "handshake is the address of the frontend's handshake socket");
  }
  const ranks = whole("ranks", options.ranks ?? 1, 1, 1024);
  const regions = options.memoryRegions ?? ["kv_cache", "weights"];
  for (const region of regions) {
    if (memoryRegions.includes(region)) continue;
    throw new EngineWireError("invalid_argument", `memoryRegions: there is no region ${JSON.stringify(region)}`, { found: region });
  }
  const maxBatch = whole("maxBatch", options.maxBatch ?? 8, 1, 65_536);
  return {
    handshake: options.handshake,
    index: whole("index", options.index ?? 0, 0, 65_536 - ranks),
    ranks,
    memorySaver: options.memorySaver ?? false,
    memoryRegions: regions,
    forwardMs: milliseconds("forwardMs", options.forwardMs ?? 1),
    maxModelLen: whole("maxModelLen", options.maxModelLen ?? 4096, 8, 2 ** 31),
    maxBatch,
    maxBatchTokens: whole("maxBatchTokens", options.maxBatchTokens ?? Math.max(256, maxBatch), 1, 2 ** 31),
    kvPages: whole("kvPages", options.kvPages ?? 512, 1, 2 ** 31),
    outputLogprobs: options.outputLogprobs ?? false,
    weightsInTokens: options.weightsInTokens ?? true,
    outputColumns: columnsOf(options.outputColumns ?? 22),
    eplb: options.eplb ?? false,
    l3WeightVersion: options.l3WeightVersion,
    host: options.hostL2 === true ? { ackMs: milliseconds("cacheAckMs", options.cacheAckMs ?? 0) } : undefined,
    model: options.model ?? "stand-in",
    needsWeightsGroup: options.needsWeightsGroup ?? true,
    control: options.control ?? true,
    dialect: dialectOf(options.dialect ?? "tagged"),
    initTimeoutMs: milliseconds("initTimeoutMs", options.initTimeoutMs ?? 60_000),
    stopsWithFrontend: options.stopsWithFrontend ?? false,
    rules: options,
  };
}

/** What a rank registers as. */
export function registrationOf(settings: Settings, rank: number): EngineCoreReadyResponseInit {
  const tokens = settings.kvPages * pageTokens;
  return {
    maxModelLen: settings.maxModelLen,
    numGpuBlocks: settings.kvPages,
    prefixGranularity: pageTokens,
    vllmVersion: "tokenspeed-0.1.0",
    worldSize: settings.ranks,
    dataParallelSize: settings.ranks,
    dataParallelRank: rank,
    maxNumSeqs: settings.maxBatch,
    maxNumBatchedTokens: settings.maxBatchTokens,
    instanceId: settings.model,
    kvCacheSizeTokens: tokens,
    kvCacheMaxConcurrency: tokens / settings.maxModelLen,
  };
}
