export * from "../generated/tokenspeed/decoders.ts";
export * from "../generated/tokenspeed/encoders.ts";
export { PROFILE_START, PROFILE_STOP } from "../generated/tokenspeed/operations.ts";
export * from "../generated/tokenspeed/replies.ts";
export type * from "../generated/tokenspeed/types.ts";
