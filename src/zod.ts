export * from "../generated/tokenspeed/zod.ts";
