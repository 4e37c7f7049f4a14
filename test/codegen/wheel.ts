import { readFileSync } from "node:fs";
import type { PythonFile } from "../../codegen/sync/read-python.ts";

/** A file of the 0.1.1 wheel. */
export function wheelFile(file: string): PythonFile {
  return { file, bytes: readFileSync(new URL(`../vectors/wheel-0.1.1/${file}`, import.meta.url)) };
}

/** The files with what `io_struct.py` imports, and with messages of their own. */
export const besides = ["zmq_wire.py", "sampling_params.py", "inputs.py", "shm_transport.py", "encode_worker.py"];
