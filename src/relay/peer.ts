import { EngineWireError } from "../wire/errors.ts";

/** Loads an optional peer on first use. Throws `transport_unavailable` with what to install. */
export async function loadPeer<Module>(name: string, load: () => Promise<Module>): Promise<Module> {
  try {
    return await load();
  } catch (cause) {
    throw new EngineWireError("transport_unavailable", `${name} could not be loaded; if it is not installed, run \`npm install ${name}\``, {
      cause,
    });
  }
}
