/** Imports a module of ours that needs an optional peer dependency, and says which one where it is missing. */
export async function needing<Module>(peer: string, load: () => Promise<Module>): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    const missing =
      error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND" && error.message.includes(`'${peer}'`);
    if (missing) throw new Error(`the generator needs ${peer}, which is not installed: npm install --save-dev ${peer}`, { cause: error });
    throw error;
  }
}
