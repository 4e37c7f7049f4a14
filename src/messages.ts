export * from "../generated/tokenspeed/decoders.ts";
export * from "../generated/tokenspeed/encoders.ts";
export { MODALITY_AUDIO, MODALITY_IMAGE, MODALITY_VIDEO, PROFILE_START, PROFILE_STOP } from "../generated/tokenspeed/operations.ts";
export * from "../generated/tokenspeed/replies.ts";
export type * from "../generated/tokenspeed/types.ts";
