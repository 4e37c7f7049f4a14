import type { Client, ClientCallOptions, EngineReply } from "../../src/index.ts";
import { PROFILE_START } from "../../src/messages.ts";

/** A call of the soak, and whether replies are its own. */
export interface SoakCall {
  readonly name: string;
  readonly run: (client: Client, options: ClientCallOptions) => Promise<readonly EngineReply[]>;
  /** `undefined` where a reply says nothing of its engine or call. */
  readonly own?: (reply: EngineReply) => boolean;
  /** Whether it goes to all engines, as gated operations must. */
  readonly toAll?: true;
}

const text = ({ reply }: EngineReply): unknown => ("message" in reply ? reply.message : undefined);
const modes = ["keep", "wait", "abort"] as const;

/** One of the soak's calls. It uses `control`, so that a refusal of the engine is a reply like others. */
export function pick(random: () => number, id: string): SoakCall {
  const dice = random();
  if (dice < 0.4) {
    return {
      name: "setInternalState",
      run: (client, options) => client.control({ $tag: "SetInternalStateReq", serverArgs: { id } }, options),
      own: ({ engine, reply }) => {
        const args = reply.$tag === "SetInternalStateReqOutput" ? (reply.serverArgs as { id?: unknown; engine?: unknown }) : {};
        return args.id === id && args.engine === engine;
      },
    };
  }
  if (dice < 0.5) {
    const mode = modes[Math.floor(random() * modes.length)] ?? "wait";
    return {
      name: "pauseScheduler",
      run: (client, options) => client.control({ $tag: "PauseSchedulerReqInput", mode }, options),
      own: (answer) => text(answer) === `engine ${answer.engine}, mode ${mode}`,
    };
  }
  if (dice < 0.55) {
    return {
      name: "updateWeightFromDisk",
      run: (client, options) =>
        client.control({ $tag: "UpdateWeightFromDiskReqInput", modelPath: `/checkpoints/${id}`, flushCache: false }, options),
      own: (answer) => text(answer) === `loaded weights from /checkpoints/${id}`,
      toAll: true,
    };
  }
  if (dice < 0.65) {
    return {
      name: "profile",
      run: (client, options) => client.control({ $tag: "ProfileReq", kind: PROFILE_START }, options),
      own: (answer) => text(answer) === `engine ${answer.engine}`,
    };
  }
  const tags = ["kv_cache"];
  const others: readonly SoakCall[] = [
    { name: "isSleeping", run: (client, options) => client.control({ $tag: "IsSleepingReqInput" }, options) },
    { name: "isSchedulerPaused", run: (client, options) => client.control({ $tag: "IsSchedulerPausedReqInput" }, options) },
    { name: "getInternalState", run: (client, options) => client.control({ $tag: "GetInternalStateReq" }, options) },
    { name: "flushCache", run: (client, options) => client.control({ $tag: "FlushCacheReqInput" }, options) },
    { name: "resumeScheduler", run: (client, options) => client.control({ $tag: "ResumeSchedulerReqInput" }, options) },
    { name: "releaseMemory", run: (client, options) => client.control({ $tag: "ReleaseMemoryOccupationReqInput", tags }, options) },
    { name: "resumeMemory", run: (client, options) => client.control({ $tag: "ResumeMemoryOccupationReqInput", tags }, options) },
  ];
  return others[Math.floor(random() * others.length)] as SoakCall;
}
