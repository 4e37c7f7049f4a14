import { type Setting, same } from "./setting.ts";

const year = 365 * 86_400_000;

/** The system clock jumps a year ahead and back in the middle of calls: no deadline moves. */
export async function clockJumps(setting: Setting): Promise<void> {
  const client = await setting.connect(setting.host(), 1);
  const clock = new SystemClock();
  try {
    for (const jump of [year, -year, 10 * year, -20 * year]) {
      setting.inject();
      const started = performance.now();
      const call = setting.ask(client, 0, { id: setting.id(), answer: "late", amount: 400 }, { timeoutMs: 30_000 });
      const short = client.isSleeping({}, { timeoutMs: 150 });
      const ended = short.then(
        () => 0,
        () => performance.now() - started,
      );
      clock.jump(jump);
      const expired = setting.count(short, ([reply]) => reply?.engine === 0);
      const [ending, spent] = [await expired, await ended];
      // it stands behind the late one; a timer's millisecond is cut off, so it may look one early
      if (ending === "timeout" && spent < 149) throw new Error(`a deadline of 150 ms was over after ${spent} ms`);
      if (ending !== "timeout" && ending !== "ok") throw new Error(`a short call ended with ${ending}`);
      same("a call over a jump of the clock", await call, "ok");
      same("a call after it", await setting.ask(client, 0, { id: setting.id(), answer: "plainly" }), "ok");
    }
  } finally {
    clock.restore();
  }
}

/** Moves what `Date` says; timers and `performance.now()` are the monotonic clock and stay. */
class SystemClock {
  readonly #real = globalThis.Date;
  #offset = 0;

  constructor() {
    const real = this.#real;
    const now = (): number => real.now() + this.#offset;
    globalThis.Date = class extends real {
      constructor(...given: [] | [number]) {
        super(given.length === 0 ? now() : given[0]);
      }

      static override now(): number {
        return now();
      }
    } as DateConstructor;
  }

  jump(milliseconds: number): void {
    this.#offset += milliseconds;
  }

  restore(): void {
    globalThis.Date = this.#real;
  }
}
