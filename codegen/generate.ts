import type { ProtocolDefinition } from "../schema/dsl.ts";
import type { EmitOptions } from "./emit/index.ts";
import { buildModel } from "./model.ts";

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

/** Imports a module of ours that needs an optional peer dependency, and says which one where it is missing. */
async function needing<Module>(peer: string, load: () => Promise<Module>): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    const missing =
      error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND" && error.message.includes(`'${peer}'`);
    if (missing) throw new Error(`the generator needs ${peer}, which is not installed: npm install --save-dev ${peer}`, { cause: error });
    throw error;
  }
}
