import { encodeStreamOpen } from "../../generated/relay/encoders.ts";
import type { RelayMessage, StreamOpenInit } from "../../generated/relay/types.ts";
import { encodeTokenizedGenerateReqInput, type TokenizedGenerateReqInputInit } from "../../src/messages.ts";
import type { RawClient } from "./raw-client.ts";

/** A message of a relay, by its tag. */
export type Taken<Tag extends RelayMessage["$tag"]> = Extract<RelayMessage, { $tag: Tag }>;

/** Opens a stream, with 16 chunks of credit unless told otherwise. */
export function open(
  message: Partial<StreamOpenInit> & { readonly id: number },
  request: Partial<TokenizedGenerateReqInputInit>,
): Uint8Array {
  const [payload, ...tensors] = encodeTokenizedGenerateReqInput({ stream: true, ...request } as TokenizedGenerateReqInputInit);
  return encodeStreamOpen({ request: payload, tensors, engine: null, credit: 16, ...message });
}

/** The end of a stream. */
export function endOf(raw: RawClient, id: number): Promise<Taken<"StreamEnd">> {
  return raw.take((message) => message.$tag === "StreamEnd" && message.id === id);
}
