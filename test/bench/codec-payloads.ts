const kinds = [
  "self_attn.qkv_proj.weight",
  "self_attn.o_proj.weight",
  "mlp.gate.weight",
  "input_layernorm.weight",
  "mlp.experts.E.gate_up_proj.weight",
  "mlp.experts.E.down_proj.weight",
];

/** Names, dtypes and shapes of so many parameters, as a mixture-of-experts model has them. */
export function weights(count: number): { names: string[]; dtypeNames: string[]; shapes: number[][] } {
  const names: string[] = [];
  const dtypeNames: string[] = [];
  const shapes: number[][] = [];
  for (let i = 0; i < count; i++) {
    const kind = (kinds[i % kinds.length] as string).replace("E", String((i * 7) % 128));
    names.push(`model.layers.${Math.floor(i / kinds.length) % 94}.${kind}`);
    dtypeNames.push(i % 10 === 9 ? "float32" : "bfloat16");
    shapes.push(i % kinds.length === 3 ? [7168] : [7168 + (i % 5) * 256, 2048]);
  }
  return { names, dtypeNames, shapes };
}

/** A server's state: 40 keys, some nested. */
export function internalState(): { [key: string]: unknown } {
  return {
    model_path: "/models/Qwen3-30B-A3B-Instruct",
    tokenizer_path: "/models/Qwen3-30B-A3B-Instruct",
    dtype: "bfloat16",
    tp_size: 8,
    pp_size: 1,
    dp_size: 4,
    ep_size: 8,
    mem_fraction_static: 0.873,
    max_running_requests: 2048,
    max_total_num_tokens: 1834201,
    context_length: 40960,
    chunked_prefill_size: 8192,
    schedule_policy: "fcfs",
    page_size: 1,
    disable_radix_cache: false,
    enable_metrics: true,
    served_model_name: "qwen3-30b",
    attention_backend: "flashinfer",
    sampling_backend: "flashinfer",
    speculative_algorithm: null,
    quantization: null,
    kv_cache_dtype: "auto",
    random_seed: 923847561,
    stream_interval: 1,
    log_level: "info",
    weight_version: "default",
    last_gen_throughput: 4321.87561,
    avg_spec_accept_length: 2.41,
    load: { num_reqs: 211, num_waiting_reqs: 17, num_tokens: 511223, dp_rank: 0 },
    memory_usage: { weight: 56.87, kvcache: 42.11, token_capacity: 1834201, graph: 3.5 },
    cuda_graph_bs: [1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 96, 128, 160, 256],
    step_time_dict: { 1: [0.0071, 0.0073, 0.0072], 8: [0.0091, 0.0092], 64: [0.0153] },
    dist: { init_addr: "tcp://10.0.0.1:20000", nnodes: 2, node_rank: 0, ranks: [0, 1, 2, 3, 4, 5, 6, 7] },
    lora_paths: [],
    allow_auto_truncate: false,
    cpu_offload_gb: 0,
    watchdog_timeout: 300,
    grammar_backend: "xgrammar",
    tool_call_parser: "qwen25",
    reasoning_parser: "qwen3",
  };
}

/** A step's output for so many requests: ids as gateways make them, mostly one token each, with or without logprobs. */
export function outputBatch(requests: number, logprobs: boolean) {
  // the same numbers in every run
  let state = 88_172_645;
  const below = (limit: number): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
  const rows = <Item>(make: (row: number) => Item): Item[] => Array.from({ length: requests }, (_, row) => make(row));
  const rid = (): string =>
    Array.from({ length: 4 }, () =>
      below(2 ** 32)
        .toString(16)
        .padStart(8, "0"),
    ).join("");
  const outputIds = rows(() => Array.from({ length: below(10) === 0 ? 2 + below(3) : 1 }, () => below(151_936)));
  return {
    rids: rows(rid),
    outputIds,
    finishedReasons: rows((row) => (row % 64 === 63 ? "stop" : "")),
    promptTokens: rows(() => below(8192)),
    completionTokens: rows(() => below(2048)),
    cachedTokens: rows(() => below(4096)),
    outputTokenLogprobsVal: outputIds.map((ids) => (logprobs ? ids.map(() => -below(1_000_000) / 131_071) : [])),
    outputTokenLogprobsIdx: outputIds.map((ids) => (logprobs ? ids : [])),
    engineIndex: 3,
    numRunning: requests,
    numWaiting: 100,
    kvActivePages: 20_000,
    kvTotalPages: 65_536,
    finishReasonDetails: rows((row) => (row % 64 === 63 ? { type: "stop", matched: 151_645 } : null)),
    specVerifyCt: [],
    acceptDraftTokens: [],
    inputTokenLogprobsVal: [],
    inputTokenLogprobsIdx: [],
    inputTopLogprobsVal: [],
    inputTopLogprobsIdx: [],
    outputTopLogprobsVal: [],
    outputTopLogprobsIdx: [],
  };
}
