import { any, bytes, f64, field, i32, i64, list, map, nullable, ref, str, struct, u16, u32 } from "../dsl.ts";
import { Failure } from "./failure.ts";

const id = field("id", u32, { doc: "That of the stream." });
const logarithms = "Natural logarithms, one for each token id.";

export const TokenLogprobs = struct("TokenLogprobs", {
  doc: "Tokens of the output with their logarithmic probabilities.",
  layout: "array",
  fields: [field("token_ids", list(i32), { doc: "The tokens." }), field("logprobs", list(f64), { doc: logarithms })],
});

export const InputTokenLogprobs = struct("InputTokenLogprobs", {
  doc: "Tokens of the prompt with their logarithmic probabilities; the first has none.",
  layout: "array",
  fields: [field("token_ids", list(i32), { doc: "The tokens." }), field("logprobs", list(nullable(f64)), { doc: logarithms })],
});

export const TopLogprobs = struct("TopLogprobs", {
  doc: "For each token of the output the most likely ones.",
  layout: "array",
  fields: [
    field("token_ids", list(list(i32)), { doc: "The tokens, best first." }),
    field("logprobs", list(list(f64)), { doc: logarithms }),
  ],
});

export const InputTopLogprobs = struct("InputTopLogprobs", {
  doc: "For each token of the prompt the most likely ones; nil where there are none.",
  layout: "array",
  fields: [
    field("token_ids", list(nullable(list(i32))), { doc: "The tokens, best first." }),
    field("logprobs", list(nullable(list(f64))), { doc: logarithms }),
  ],
});

export const OutputChunk = struct("OutputChunk", {
  doc: "What an engine says about a request at once.",
  layout: "array",
  fields: [
    field("output_ids", list(i32), { doc: "The tokens since the last chunk." }),
    field("finish_reason", nullable(str), { doc: "`stop`, `length` or `abort` in the last chunk; nil before." }),
    field("finish_details", nullable(map(any)), { doc: "More on why it ended." }),
    field("prompt_tokens", i64, { doc: "Tokens of the prompt." }),
    field("completion_tokens", i64, { doc: "Tokens generated so far." }),
    field("cached_tokens", i64, { doc: "Tokens of the prompt that came from the prefix cache." }),
    field("output_token_logprobs", nullable(ref(TokenLogprobs)), { doc: "Of `output_ids`; nil where they were not asked for." }),
    field("output_top_logprobs", nullable(ref(TopLogprobs)), { doc: "Alternatives to `output_ids`; nil where they were not asked for." }),
    field("input_token_logprobs", nullable(ref(InputTokenLogprobs)), { doc: "Of the prompt; nil but for the chunk that brings them." }),
    field("input_top_logprobs", nullable(ref(InputTopLogprobs)), { doc: "Alternatives to the prompt's tokens; nil likewise." }),
    field("spec_verify_ct", nullable(i64), { doc: "Forwards that verified drafts so far." }),
    field("accept_draft_tokens", nullable(f64), { doc: "Share of drafted tokens that were accepted." }),
  ],
});

export const StreamOpen = struct("StreamOpen", {
  doc: "Asks for the generation of tokens.",
  layout: "array",
  tagged: true,
  fields: [
    field("id", u32, { doc: "Chosen by the client, among the ids of calls." }),
    field("request", bytes, {
      doc: "The encoded `TokenizedGenerateReqInput`. The relay gives it a request id of its own, so that clients cannot meet under one.",
    }),
    field("tensors", list(bytes), { doc: "The frames of its tensors." }),
    field("engine", nullable(u16), { doc: "The engine; nil leaves the choice to the relay." }),
    field("credit", u32, { doc: "How many chunks may be sent before more credit is given." }),
    field("buffered_tokens", nullable(u32), {
      default: null,
      doc: "How many tokens may wait at the relay for credit; the relay may allow fewer. Nil for what it allows.",
    }),
  ],
});

export const StreamOpened = struct("StreamOpened", {
  doc: "The request was sent.",
  layout: "array",
  tagged: true,
  fields: [
    id,
    field("engine", u16, { doc: "The engine it went to." }),
    field("rid", str, { doc: "The request id that the engine knows it by." }),
  ],
});

export const StreamChunks = struct("StreamChunks", {
  doc: "Output of streams: what is there for all of a client's streams leaves in one message.",
  layout: "array",
  tagged: true,
  fields: [
    field("ids", list(u32), { doc: "The stream of each chunk. Chunks of one stream are in order." }),
    field("chunks", list(ref(OutputChunk)), { doc: "The chunks; each uses one credit of its stream." }),
  ],
});

export const StreamCredit = struct("StreamCredit", {
  doc: "Lets streams go on: what a client has for all of its streams goes in one message.",
  layout: "array",
  tagged: true,
  fields: [
    field("ids", list(u32), { doc: "The streams; one that has ended is no mistake." }),
    field("credits", list(u32), { doc: "How many chunks more each of them may be sent." }),
  ],
});

export const StreamEnd = struct("StreamEnd", {
  doc: "The end of a stream, behind its last chunk.",
  layout: "array",
  tagged: true,
  fields: [id, field("failure", nullable(ref(Failure)), { default: null, doc: "Why it failed." })],
});
