import { encodeEvent } from "../../generated/relay/encoders.ts";
import type { EngineViewInit } from "../../generated/relay/types.ts";
import type { CallGuard } from "../client/guard/call-guard.ts";
import { type EngineState, unknownState } from "../client/guard/engine-state.ts";
import type { Connection, EngineInfo } from "../transport/connection.ts";
import { toView } from "../transport/relay/engine-view.ts";
import { toEvent } from "../transport/relay/event.ts";
import type { Session } from "./session.ts";

/** How long changes are gathered before they are told, in milliseconds. */
const coalesceMs = 10;

/** Tells sessions about events, and about engines whose state is not what it was when they were told last. */
export class Watch {
  readonly #connection: Connection;
  readonly #guard: CallGuard;
  readonly #sessions: ReadonlySet<Session>;
  readonly #failed: (error: unknown) => void;
  readonly #told = new Map<number, { readonly state: EngineState; readonly up: EngineInfo["state"]; readonly control: boolean }>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `failed` hears of what cannot be told: an engine may say what a message of ours cannot hold. */
  constructor(connection: Connection, guard: CallGuard, sessions: ReadonlySet<Session>, failed: (error: unknown) => void) {
    this.#connection = connection;
    this.#guard = guard;
    this.#sessions = sessions;
    this.#failed = failed;
  }

  /** The engines as a new session is told them. */
  views(): readonly EngineViewInit[] {
    this.tellChanges();
    return this.#connection.engines.map((info) => toView(info, this.#told.get(info.index)?.state ?? unknownState(info.index), true));
  }

  /** Reads the connection's events until it has closed. */
  async run(): Promise<void> {
    for await (const event of this.#connection.events()) {
      try {
        const told = toEvent(event);
        if (told !== undefined) {
          const message = encodeEvent(told);
          for (const session of this.#sessions) session.tellEvent(told, message);
        }
      } catch (error) {
        this.#failed(error);
      }
      this.stirred();
    }
  }

  /** Looks for changes soon, once for all that happens until then: looking costs more than most calls. */
  stirred(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.tellChanges();
    }, coalesceMs);
    this.#timer.unref();
  }

  /** Looks for changes now and tells them. Never throws. */
  tellChanges(): void {
    try {
      const changed = this.#changes();
      if (changed.length > 0) for (const session of this.#sessions) session.tellEngines(changed);
    } catch (error) {
      this.#failed(error);
    }
  }

  #changes(): readonly EngineViewInit[] {
    const changed: EngineViewInit[] = [];
    for (const info of this.#connection.engines) {
      const state = this.#guard.state(info.index);
      const told = this.#told.get(info.index);
      const { control } = info.capabilities;
      // the guard makes a new object of a state that changes, and has none of a dead engine
      if (told?.up === "dead" || (told?.state === state && told.up === info.state && told.control === control)) continue;
      this.#told.set(info.index, { state, up: info.state, control });
      changed.push(toView(info, state, false));
    }
    return changed;
  }
}
