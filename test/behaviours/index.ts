import { calls } from "./calls.ts";
import { losses } from "./losses.ts";
import type { Behaviours } from "./rig.ts";
import { streams } from "./streams.ts";

/** Everything that every kind of connection does. */
export const behaviours: Behaviours = { ...calls, ...streams, ...losses };
