import type { Connection, EngineReply, FarGuard } from "../../transport/connection.ts";
import type { ClientCall } from "../interceptors.ts";
import { type EngineState, unknownState } from "./engine-state.ts";
import { Guard } from "./guard.ts";

/** What a client checks its calls with. */
export interface CallGuard {
  /** What is known of each engine, in index order. */
  readonly states: readonly EngineState[];
  /** What is known of one engine. */
  state(engine: number): EngineState;
  /** Sends a call, under the guard or past it. */
  call(call: ClientCall, timeoutMs: number, guarded: boolean): Promise<readonly EngineReply[]>;
}

/** The guard of a connection: the one at its far end, or one of its own. Two would know different things of the same engines. */
export function guardOf(connection: Connection): CallGuard {
  return connection.guard === undefined ? new Guard(connection) : new Delegate(connection.guard);
}

class Delegate implements CallGuard {
  readonly #far: FarGuard;

  constructor(far: FarGuard) {
    this.#far = far;
  }

  get states(): readonly EngineState[] {
    return this.#far.states;
  }

  state(engine: number): EngineState {
    return this.states.find((state) => state.engine === engine) ?? unknownState(engine);
  }

  call({ request, options }: ClientCall, timeoutMs: number, guarded: boolean): Promise<readonly EngineReply[]> {
    const { signal, engines, release, onReply, onWait } = options;
    return this.#far.call(request, { signal, timeoutMs, engines, release, onReply, onWait }, guarded);
  }
}
