import { any, bool, dict, f64, field, i32, i64, list, nullable, ref, str, struct, u64, value } from "../dsl.ts";
import { BaseReq } from "./base.ts";
import { MultimodalInputs } from "./multimodal.ts";
import { SamplingParams } from "./sampling.ts";

export const SessionParams = struct("SessionParams", {
  doc: "Which earlier request a request continues.",
  layout: "array",
  fields: [
    field("id", nullable(str), { default: null, doc: "The session." }),
    field("rid", nullable(str), { default: null, doc: "The request of the session that is continued." }),
    field("offset", nullable(i64), { default: null, doc: "Token of that request from which it is continued." }),
    field("replace", nullable(bool), { default: null, doc: "Whether the continued request is replaced instead of branched from." }),
  ],
});

export const TokenizedGenerateReqInput = struct("TokenizedGenerateReqInput", {
  doc: "A request for tokens, the payload of an ADD message.",
  layout: "array",
  tagged: true,
  extends: BaseReq,
  fields: [
    field("input_text", nullable(str), {
      default: null,
      doc: "The prompt as text, where the sender has it; nil where there are only token ids.",
    }),
    field("input_ids", nullable(list(i32)), { default: null, doc: "The prompt as token ids; nil where `input_embeds` stands for it." }),
    field("sampling_params", ref(SamplingParams), { doc: "How tokens are chosen and when the request ends." }),
    field("return_logprob", bool, {
      default: false,
      doc: "Whether logprobs of the sampled tokens are returned; needs an engine that has them enabled.",
    }),
    field("logprob_start_len", i64, { default: -1, doc: "First token of the prompt whose logprob is returned; -1 for none but the last." }),
    field("top_logprobs_num", i64, { default: 0, doc: "Alternatives to return at each place." }),
    field("token_ids_logprob", nullable(list(i32)), { default: null, doc: "Token ids whose logprobs are returned at each place." }),
    field("stream", bool, { default: false, doc: "Whether tokens are sent as they come instead of all at the end." }),
    field("input_embeds", nullable(list(any)), {
      default: null,
      doc: "The prompt as embeddings: nested lists of floats, the integral ones as `float()`.",
    }),
    field("session_params", nullable(ref(SessionParams)), { default: null, doc: "The session it belongs to." }),
    field("custom_logit_processor", nullable(str), {
      default: null,
      doc: "A serialized logit processor, as its `to_str()` gives it.",
    }),
    field("return_hidden_states", bool, { default: false, doc: "Whether hidden states are returned." }),
    field("created_time", f64, { default: 0, doc: "When the request was made, in seconds since 1970." }),
    field("bootstrap_host", nullable(str), {
      default: null,
      doc: "Host from which a decode engine fetches the KV cache of the prompt, where prefill runs elsewhere.",
    }),
    field("bootstrap_port", nullable(i64), { default: null, doc: "Port of that host." }),
    field("bootstrap_room", nullable(u64), {
      default: null,
      doc: "Number by which prefill and decode engines find each other for this request; random 64 bits.",
    }),
    field("input_multi_ids", nullable(list(list(i32))), {
      default: null,
      doc: "Further token ids of the prompt, for models that read several streams.",
    }),
    field("input_extra_infos", nullable(list(dict)), { default: null, doc: "What else a model asks for." }),
    field("input_ids_unpadded", nullable(list(i32)), {
      default: null,
      doc: "The prompt's token ids before places of images were filled with values of their own; those that a tokenizer knows.",
    }),
    field("multimodal_inputs", nullable(ref(MultimodalInputs)), { default: null, doc: "Images, videos and audio of the prompt." }),
    field("validation_error", nullable(str), {
      default: null,
      doc: "Why the request is not legal: the engine ends it at once as aborted, with this reason.",
    }),
    field("data_parallel_rank", nullable(i64), {
      default: null,
      doc: "The engine of the group that must run it, counted from 0; nil where the group may choose.",
    }),
  ],
});

export const AbortRids = value(
  "AbortRids",
  list(str),
  "Ids of requests to end, the payload of an ABORT message; ids that are not known are ignored.",
);
