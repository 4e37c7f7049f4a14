import { protocol, union } from "../dsl.ts";
import { Call, Cancel, Completed, Event, Reply, Waiting } from "./call.ts";
import { Failure } from "./failure.ts";
import { EngineLoad, EnginesChanged, EngineView, GoingAway, Hello, Limits, Ping, Pong, Refused, Welcome } from "./session.ts";
import {
  InputTokenLogprobs,
  InputTopLogprobs,
  OutputChunk,
  StreamChunks,
  StreamCredit,
  StreamEnd,
  StreamOpen,
  StreamOpened,
  TokenLogprobs,
  TopLogprobs,
} from "./stream.ts";

/**
 * The relay's protocol, `enginewire.v1`: each binary WebSocket message is one of these structs. It changes by appending
 * only: fields with a default at the end of a struct, structs to a union.
 */
export const relay = protocol("relay", {
  release: "1.0.0",
  doc: "The relay's protocol over WebSocket.",
  structs: [Failure, EngineLoad, EngineView, Limits, TokenLogprobs, TopLogprobs, InputTokenLogprobs, InputTopLogprobs, OutputChunk],
  operations: [],
  unions: [
    union("ClientMessage", {
      doc: "What a client sends.",
      members: [Hello, Call, Cancel, StreamOpen, StreamCredit, Ping],
    }),
    union("RelayMessage", {
      doc: "What a relay sends.",
      members: [Welcome, EnginesChanged, Reply, Waiting, Completed, Event, StreamOpened, StreamChunks, StreamEnd, Pong, GoingAway, Refused],
    }),
  ],
  constants: [],
  files: ["types.ts", "encoders.ts", "decoders.ts"],
});
