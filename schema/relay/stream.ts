import { bytes, field, list, nullable, ref, struct, u16, u32 } from "../dsl.ts";
import { Failure } from "./failure.ts";

const id = field("id", u32, { doc: "That of the stream." });

export const StreamOpen = struct("StreamOpen", {
  doc: "Asks for the generation of tokens.",
  layout: "array",
  tagged: true,
  fields: [
    field("id", u32, { doc: "Chosen by the client, among the ids of calls." }),
    field("request", bytes, { doc: "The encoded request." }),
    field("engine", nullable(u16), { default: null, doc: "The engine; nil leaves the choice to the relay." }),
    field("credit", u32, { doc: "How many chunks may be sent before more credit is given." }),
  ],
});

export const StreamChunks = struct("StreamChunks", {
  doc: "Output of a stream, in order.",
  layout: "array",
  tagged: true,
  fields: [id, field("chunks", list(bytes), { doc: "Encoded chunks; each uses one credit." })],
});

export const StreamCredit = struct("StreamCredit", {
  doc: "Lets a stream go on.",
  layout: "array",
  tagged: true,
  fields: [id, field("credit", u32, { doc: "How many chunks more may be sent." })],
});

export const StreamEnd = struct("StreamEnd", {
  doc: "The end of a stream.",
  layout: "array",
  tagged: true,
  fields: [id, field("failure", nullable(ref(Failure)), { default: null, doc: "Why it failed." })],
});
