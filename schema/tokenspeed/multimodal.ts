import { constant, dict, field, i64, list, literal, map, nullable, ref, str, struct, tensor, tuple, u64 } from "../dsl.ts";
import { BaseReq } from "./base.ts";

export const MODALITY_IMAGE = constant("MODALITY_IMAGE", 1, "The `modality` of an image.");
export const MODALITY_VIDEO = constant("MODALITY_VIDEO", 2, "The `modality` of a video.");
export const MODALITY_AUDIO = constant("MODALITY_AUDIO", 3, "The `modality` of audio.");

export const ShmTensorHandle = struct("ShmTensorHandle", {
  doc: "A tensor in a POSIX shared memory segment of the host that sender and engine share.",
  layout: "map",
  definedIn: "shm_transport.py",
  fields: [
    field("shm_name", str, { doc: "Name of the segment." }),
    field("shape", list(i64), { doc: "Length of each dimension." }),
    field("dtype", str, { doc: "The dtype as torch names it, such as `float16`." }),
  ],
});

export const MultimodalDataItem = struct("MultimodalDataItem", {
  doc: "One image, video or piece of audio of a request.",
  layout: "array",
  definedIn: "inputs.py",
  fields: [
    field("modality", literal(1, 2, 3), { doc: "What it is: 1 an image, 2 a video, 3 audio." }),
    field("hash", nullable(u64), { default: null, doc: "Identity of its content, by which a cached prefix is found." }),
    field("pad_value", nullable(i64), { default: null, doc: "Token id that stands in the prompt for it." }),
    field("offsets", nullable(list(tuple(i64, i64))), {
      default: null,
      doc: "Where it stands in the prompt: start and end of each range of tokens.",
    }),
    field("feature", nullable(tensor), {
      default: null,
      doc: "Its features, such as pixels; in flight either this or `feature_shm` is set.",
    }),
    field("feature_shm", nullable(ref(ShmTensorHandle)), { default: null, doc: "Its features in shared memory." }),
    field("model_specific_data", map(tensor), { default: {}, doc: "Further tensors that the model asks for, such as `image_grid_thw`." }),
    field("encoded", nullable(tensor), { default: null, doc: "The encoder's output, inside an engine only; nil on this wire." }),
    field("encoded_deepstack", nullable(tensor), {
      default: null,
      doc: "The encoder's output for deeper layers, inside an engine only; nil on this wire.",
    }),
    field("encode_handshake", nullable(dict), {
      default: null,
      doc: "Where an encode worker offers its embedding: `bootstrap_room`, `bootstrap_host` and `bootstrap_port`; nil where the engine encodes it.",
    }),
  ],
});

export const MultimodalInputs = struct("MultimodalInputs", {
  doc: "The images, videos and audio of a request.",
  layout: "array",
  definedIn: "inputs.py",
  fields: [
    field("mm_items", list(ref(MultimodalDataItem)), { doc: "The items in the order of the prompt." }),
    field("im_token_id", nullable(i64), { default: null, doc: "Token id that marks an image in the prompt." }),
    field("video_token_id", nullable(i64), { default: null, doc: "Token id that marks a video in the prompt." }),
    field("mrope_positions", nullable(tensor), {
      default: null,
      doc: "Positions of the prompt's tokens, for models with M-RoPE.",
    }),
    field("mrope_position_delta", nullable(tensor), {
      default: null,
      doc: "What to add to the place of a token behind the prompt for its position, as a tensor.",
    }),
    field("mrope_position_delta_scalar", nullable(i64), { default: null, doc: "The same as a number." }),
    field("mrope_position_delta_repeated_cache", nullable(tensor), { default: null, doc: "Not used any more; nil on this wire." }),
  ],
});

export const EncodeRequest = struct("EncodeRequest", {
  doc: "Items for an encode worker to embed and to hand to the engines that wait for them.",
  layout: "array",
  tagged: true,
  definedIn: "encode_worker.py",
  extends: BaseReq,
  fields: [
    field("request_id", str, { doc: "The gateway's id of the request." }),
    field("bootstrap_host", str, { doc: "Host of the encode worker's rendezvous, as the gateway names it." }),
    field("bootstrap_port", i64, { doc: "Port of that rendezvous." }),
    field("bootstrap_room", u64, { doc: "Number under which the engines wait for the embedding." }),
    field("items", list(ref(MultimodalDataItem)), { doc: "The items to embed; the gateway sends one at a time." }),
  ],
});
