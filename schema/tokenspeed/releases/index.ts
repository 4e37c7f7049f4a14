import type { Release } from "../../release.ts";
import { release010 } from "./0.1.0.ts";
import { release011 } from "./0.1.1.ts";

/** The recorded releases. */
export const releases: readonly Release[] = [release010, release011];
