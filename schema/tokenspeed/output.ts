import { any, base, f64, field, i32, i64, list, map, nullable, str, struct } from "../dsl.ts";

/** What messages about several requests begin with. */
export const BaseBatchReq = base("BaseBatchReq", {
  doc: "The field that messages about several requests begin with.",
  fields: [
    field("rids", nullable(list(str)), {
      default: null,
      doc: "The requests' ids, one for each row of the columns; nil is not sent on this wire.",
    }),
  ],
});

export const BatchTokenIDOutSlim = struct("BatchTokenIDOutSlim", {
  doc: "What one step of an engine brought for each of several requests, in columns of one row a request, and the engine's load. Producers stop after 8, 9, 13 or 22 columns.",
  layout: "array",
  tagged: true,
  extends: BaseBatchReq,
  fields: [
    field("output_ids", list(list(i32)), { doc: "Tokens that are new since the row's last batch." }),
    field("finished_reasons", list(str), { doc: "Why a request ended: `stop`, `length` or `abort`; empty while it runs." }),
    field("prompt_tokens", list(i64), { doc: "Tokens of the prompt." }),
    field("completion_tokens", list(i64), { doc: "Tokens generated so far, those of this batch included." }),
    field("cached_tokens", list(i64), { doc: "Tokens of the prompt that were found in the prefix cache." }),
    field("output_token_logprobs_val", list(list(f64)), { doc: "Logprob of each new token; empty rows for requests that did not ask." }),
    field("output_token_logprobs_idx", list(list(i32)), { doc: "Token id that each of these logprobs is for." }),
    field("engine_index", i64, { default: 0, doc: "The engine that sends it." }),
    field("num_running", i64, { default: 0, doc: "Requests that this engine runs." }),
    field("num_waiting", i64, { default: 0, doc: "Requests that wait there." }),
    field("kv_active_pages", i64, { default: 0, doc: "Pages of its KV cache in use." }),
    field("kv_total_pages", i64, {
      default: 0,
      doc: "Pages of its KV cache; 0 means that no load is reported, not that the engine is empty.",
    }),
    field("finish_reason_details", list(nullable(map(any))), {
      default: [],
      doc: "Why a request ended in full: `type`, and what it matched or why it was aborted; nil while it runs.",
    }),
    field("spec_verify_ct", list(i64), {
      default: [],
      doc: "Rounds of speculative decoding in which drafted tokens were verified, so far; no rows without it.",
    }),
    field("accept_draft_tokens", list(nullable(f64)), {
      default: [],
      doc: "Drafted tokens accepted in such a round, once the request has ended; nil while it runs, no rows without speculative decoding.",
    }),
    field("input_token_logprobs_val", list(list(nullable(f64))), {
      default: [],
      doc: "Logprob of each token of the prompt, sent once a request; nil for the first one. No rows where no request of the batch has any.",
    }),
    field("input_token_logprobs_idx", list(list(i32)), { default: [], doc: "Token id that each of these logprobs is for." }),
    field("input_top_logprobs_val", list(list(nullable(list(f64)))), {
      default: [],
      doc: "Logprobs of the likeliest tokens at each place of the prompt, best first; nil for the first place.",
    }),
    field("input_top_logprobs_idx", list(list(nullable(list(i32)))), { default: [], doc: "Token ids that these logprobs are for." }),
    field("output_top_logprobs_val", list(list(list(f64))), {
      default: [],
      doc: "Logprobs of the likeliest tokens at the place of each new token, best first.",
    }),
    field("output_top_logprobs_idx", list(list(list(i32))), { default: [], doc: "Token ids that these logprobs are for." }),
  ],
});
