import type { Client, ClientCallOptions, EngineReply } from "../../../src/index.ts";

/** One call of the step. */
export interface Step {
  readonly name: string;
  readonly call: (client: Client, options: ClientCallOptions) => Promise<readonly EngineReply[]>;
}

/** What one bucket of a weight update holds; real trainers group parameters by size. */
const buckets = [
  { names: ["model.embed_tokens.weight", "model.norm.weight"], shapes: [[151_936, 2048], [2048]] },
  { names: ["model.layers.0.self_attn.qkv_proj.weight"], shapes: [[2560, 2048]] },
  { names: ["model.layers.0.mlp.gate_up_proj.weight"], shapes: [[12_288, 2048]] },
];

/** What a trainer does between two of its own steps. */
export const steps: readonly Step[] = [
  { name: "is the scheduler paused?", call: (client, options) => client.isSchedulerPaused({}, options) },
  { name: "pause, letting requests finish", call: (client, options) => client.pauseScheduler({ mode: "wait" }, options) },
  {
    name: "join the trainer's group",
    call: (client, options) =>
      client.initWeightsUpdateGroup({ masterAddress: "127.0.0.1", masterPort: 29_500, rankOffset: 1, worldSize: 3 }, options),
  },
  ...buckets.map(({ names, shapes }, index) => ({
    name: `update weights, bucket ${index + 1} of ${buckets.length}`,
    call: (client: Client, options: ClientCallOptions) => {
      const dtypeNames = names.map(() => "bfloat16");
      return client.updateWeightsFromDistributed({ names, dtypeNames, shapes, flushCache: false, weightVersion: "step-1" }, options);
    },
  })),
  { name: "flush the prefix cache", call: (client, options) => client.flushCache({}, options) },
  { name: "resume", call: (client, options) => client.resumeScheduler({}, options) },
  { name: "is the scheduler paused?", call: (client, options) => client.isSchedulerPaused({}, options) },
];
