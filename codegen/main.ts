#!/usr/bin/env node
import { mkdirSync, writeFileSync } from "node:fs";
import { tokenspeed } from "../schema/tokenspeed/index.ts";
import { emit } from "./emit/index.ts";
import { buildModel } from "./model.ts";

const files = emit(buildModel(tokenspeed), { wire: "../../src/wire/index.ts", extension: ".ts" });
mkdirSync("generated/tokenspeed", { recursive: true });
for (const [n, t] of files) writeFileSync(`generated/tokenspeed/${n}`, t);
