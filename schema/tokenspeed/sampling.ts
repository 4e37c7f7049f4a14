import { any, bool, f64, field, i64, map, nullable, set, str, strOrList, struct } from "../dsl.ts";

export const SamplingParams = struct("SamplingParams", {
  doc: "How a request's tokens are chosen and when it ends.",
  layout: "array",
  definedIn: "sampling_params.py",
  fields: [
    field("max_new_tokens", nullable(i64), { default: null, doc: "Tokens to generate at most; nil leaves it to the engine." }),
    field("stop", nullable(strOrList), {
      default: null,
      doc: "Stop strings as a caller gives them; an engine copies them to `stop_strs`, and refuses them where it does not detokenize.",
    }),
    field("stop_token_ids", nullable(set(i64)), {
      default: null,
      doc: "Token ids that end the request; a set in Python, in any order here.",
    }),
    field("temperature", f64, { default: 1, doc: "Sampling temperature; the engine takes one below 1e-6 for greedy." }),
    field("top_p", f64, { default: 1, doc: "Probability mass that is sampled from, above 0 and at most 1." }),
    field("top_k", i64, { default: -1, doc: "How many of the likeliest tokens are sampled from; -1 for all, 1 for greedy." }),
    field("min_p", f64, { default: 0, doc: "Least probability of a token, relative to that of the likeliest." }),
    field("frequency_penalty", f64, { default: 0, doc: "Taken from a token's logit for each time it was generated." }),
    field("presence_penalty", f64, { default: 0, doc: "Taken from a token's logit once it was generated." }),
    field("repetition_penalty", f64, { default: 1, doc: "Divides the logits of tokens that were seen; 1 for none." }),
    field("min_new_tokens", i64, { default: 0, doc: "Tokens to generate before the request may end by itself." }),
    field("json_schema", nullable(str), { default: null, doc: "JSON schema that the text must satisfy." }),
    field("regex", nullable(str), { default: null, doc: "Regular expression that the text must match." }),
    field("ebnf", nullable(str), { default: null, doc: "EBNF grammar that the text must follow." }),
    field("structural_tag", nullable(str), { default: null, doc: "Structural tag that constrains parts of the text, as JSON." }),
    field("ignore_eos", bool, { default: false, doc: "Whether to go on behind end-of-sequence tokens." }),
    field("skip_special_tokens", bool, { default: true, doc: "Whether whoever detokenizes leaves special tokens out." }),
    field("spaces_between_special_tokens", bool, { default: true, doc: "Whether whoever detokenizes puts spaces between special tokens." }),
    field("no_stop_trim", bool, { default: false, doc: "Whether a stop string that was met stays in the text." }),
    field("thinking_budget", nullable(i64), { default: null, doc: "Tokens for reasoning at most; nil for no limit." }),
    field("custom_params", nullable(map(any)), { default: null, doc: "What a custom logit processor reads." }),
    field("stream_interval", nullable(i64), {
      default: null,
      doc: "Tokens between two outputs of a streamed request; nil for the engine's own.",
    }),
    field("logit_bias", nullable(map(f64)), { default: null, doc: "Added to logits, by token id as text." }),
    field("seed", nullable(i64), { default: null, doc: "Seed of sampling; nil lets the engine choose." }),
    field("logprobs", nullable(i64), {
      default: null,
      doc: "Nil for no logprobs of the output; 0 for those of the sampled tokens, the only other value engines take.",
    }),
    field("n", i64, { default: 1, doc: "Completions of the prompt; engines take only 1." }),
    field("stop_strs", nullable(strOrList), {
      default: null,
      doc: "Stop strings after normalization; leave it out unless `is_normalized` is set.",
    }),
    field("stop_str_max_len", i64, { default: 0, doc: "Length of the longest stop string in tokens, set by normalization." }),
    field("is_normalized", bool, { default: false, doc: "Whether the sender has done what the engine else does on decoding." }),
  ],
});
