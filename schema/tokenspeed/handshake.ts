import { bool, dict, f64, field, i64, list, nullable, ref, str, struct } from "../dsl.ts";

export const ReadyMessage = struct("ReadyMessage", {
  doc: "HELLO and READY, from an engine on the handshake socket.",
  layout: "map",
  python: "WireReadyMessage",
  definedIn: "zmq_wire.py",
  fields: [
    field("status", nullable(str), { default: null, doc: "`HELLO` or `READY`." }),
    field("local", nullable(bool), { default: null, doc: "Whether the engine runs on the frontend's host; engines send true." }),
    field("headless", nullable(bool), { default: null, doc: "Whether the engine has no HTTP server of its own; engines send true." }),
    field("parallel_config_hash", nullable(str), {
      default: null,
      doc: "Hash of the parallel configuration, where the engine computes one.",
    }),
  ],
});

export const HandshakeAddresses = struct("HandshakeAddresses", {
  doc: "Where one engine connects; it takes the first input and the first output.",
  layout: "map",
  python: "WireHandshakeAddresses",
  definedIn: "zmq_wire.py",
  fields: [
    field("inputs", list(str), { default: [], doc: "Addresses of input ROUTER sockets." }),
    field("outputs", list(str), { default: [], doc: "Addresses of output PULL sockets." }),
    field("coordinator_input", nullable(str), { default: null, doc: "Address of a coordinator's input; unused by TokenSpeed." }),
    field("coordinator_output", nullable(str), { default: null, doc: "Address of a coordinator's output; unused by TokenSpeed." }),
    field("frontend_stats_publish_address", nullable(str), {
      default: null,
      doc: "Where a frontend publishes statistics; unused by TokenSpeed.",
    }),
  ],
});

export const HandshakeInitMessage = struct("HandshakeInitMessage", {
  doc: "INIT, the frontend's answer to one engine's HELLO.",
  layout: "map",
  python: "WireHandshakeInitMessage",
  definedIn: "zmq_wire.py",
  fields: [
    field("addresses", ref(HandshakeAddresses), { doc: "Where that engine connects." }),
    field("parallel_config", dict, { default: {}, doc: "Opaque to the engine." }),
  ],
});

export const EngineCoreReadyResponse = struct("EngineCoreReadyResponse", {
  doc: "The registration: what an engine says about itself when it has connected its input.",
  layout: "map",
  python: "WireEngineCoreReadyResponse",
  definedIn: "zmq_wire.py",
  fields: [
    field("max_model_len", i64, { default: 0, doc: "Longest prompt and output together, in tokens." }),
    field("num_gpu_blocks", i64, { default: 0, doc: "KV cache pages on the device." }),
    field("prefix_granularity", i64, { default: 0, alias: "block_size", doc: "Tokens of a cache page, the unit of prefix reuse." }),
    field("dp_stats_address", nullable(str), { default: null, doc: "Where data-parallel statistics are published." }),
    field("dtype", str, { default: "bfloat16", doc: "dtype of the weights." }),
    field("multimodal_encoder_dtype", nullable(str), { default: null, doc: "dtype of the multimodal encoder." }),
    field("vllm_version", str, { default: "", doc: "Engine version; holds `tokenspeed-<version>`." }),
    field("world_size", i64, { default: 1, doc: "Workers of the whole engine." }),
    field("data_parallel_size", i64, { default: 1, doc: "Engines of the attention data-parallel group." }),
    field("tensor_parallel_size", i64, { default: 1, doc: "Workers that share each tensor." }),
    field("pipeline_parallel_size", i64, { default: 1, doc: "Pipeline stages." }),
    field("decode_context_parallel_size", i64, { default: 1, doc: "Workers that share the KV cache of a request." }),
    field("data_parallel_rank", i64, { default: 0, doc: "This engine's place in its group, from 0." }),
    field("max_num_seqs", i64, { default: 0, doc: "Requests that run at a time." }),
    field("max_num_batched_tokens", i64, { default: 0, doc: "Tokens of one forward; 0 or -1 when prefill is not chunked." }),
    field("instance_id", str, { default: "", doc: "Name of this engine instance." }),
    field("kv_cache_size_tokens", nullable(i64), { default: null, doc: "Capacity of the KV cache, in tokens." }),
    field("kv_cache_max_concurrency", nullable(f64), { default: null, doc: "Requests of full length that the KV cache holds." }),
    field("kv_events_config", nullable(dict), { default: null, doc: "Where and how KV cache events are published." }),
  ],
});
