import type { ProtocolDefinition } from "../schema/dsl.ts";
import type { EmitOptions } from "./emit/index.ts";
import { buildModel } from "./model.ts";
import { needing } from "./peer.ts";

/** Checks protocols and returns the generated files by their path below the output folder. */
export async function generate(protocols: readonly ProtocolDefinition[], options: EmitOptions): Promise<Map<string, string>> {
  const { checkProtocol } = await needing("zod", () => import("../schema/check.ts"));
  const { emit } = await needing("ts-morph", () => import("./emit/index.ts"));
  const files = new Map<string, string>();
  for (const protocol of protocols) {
    for (const [name, text] of emit(buildModel(checkProtocol(protocol)), options)) files.set(`${protocol.name}/${name}`, text);
  }
  return files;
}
