import type { GenerateRequest, RoutableEngine, Routing } from "../transport/generation.ts";
import { EngineWireError } from "../wire/errors.ts";

const names = ["round-robin", "least-in-flight", "minimum-cache-usage", "bootstrap-room"] as const satisfies readonly Routing[];

/** Refuses a routing that does not exist. Throws `invalid_argument`. */
export function checkRouting(routing: Routing): Routing {
  if (typeof routing === "function" || names.includes(routing)) return routing;
  const known = `${names.join(", ")} or a function`;
  throw new EngineWireError("invalid_argument", `routing must be ${known}, got ${String(routing)}`, { path: "routing", expected: known });
}

/** Chooses the engine of each request, among those that are up. */
export class RequestRouter {
  readonly #routing: Routing;
  /** All engines, dead or not, ascending. */
  readonly #indices: readonly number[];
  #turn = 0;

  constructor(routing: Routing, indices: readonly number[]) {
    this.#routing = routing;
    this.#indices = indices;
  }

  /**
   * The index of the engine for a request. `engines` are those that are up, at least one. The result may be one that is
   * not: a room or a rank belongs to one engine. Throws `invalid_argument`.
   */
  choose(request: GenerateRequest, engines: readonly RoutableEngine[], ranks: ReadonlyMap<number, number>): number {
    const routing = this.#routing;
    if (routing === "bootstrap-room") return this.#ofRoom(request.bootstrapRoom);
    const given = request.dataParallelRank ?? undefined;
    const rank = given === undefined ? undefined : Number(given);
    const candidates = rank === undefined ? engines : engines.filter(({ dataParallelRank }) => dataParallelRank === rank);
    const [first] = candidates;
    if (first === undefined) return ofRank(rank, ranks);
    if (typeof routing === "function") return this.#ofFunction(routing, request, candidates);
    if (routing === "least-in-flight") return leastOf(candidates, (engine) => [engine.inFlight]);
    if (routing === "minimum-cache-usage") return leastOf(candidates, (engine) => [engine.load?.kvActivePages ?? 0, engine.inFlight]);
    this.#turn = (this.#turn + 1) % Number.MAX_SAFE_INTEGER;
    return (candidates[(this.#turn - 1) % candidates.length] as RoutableEngine).index;
  }

  #ofRoom(room: bigint | number | null | undefined): number {
    if (room === null || room === undefined)
      throw invalid("bootstrapRoom", "routing is bootstrap-room, so that every request needs a room");
    const whole = typeof room === "bigint" || Number.isSafeInteger(room);
    if (!whole || room < 0) throw invalid("bootstrapRoom", "a room is a bigint, or a safe integer, that is not negative");
    return this.#indices[Number(BigInt(room) % BigInt(this.#indices.length))] as number;
  }

  #ofFunction(
    routing: (request: GenerateRequest, engines: readonly RoutableEngine[]) => number,
    request: GenerateRequest,
    engines: readonly RoutableEngine[],
  ): number {
    const index = routing(request, engines);
    if (engines.some((engine) => engine.index === index)) return index;
    throw invalid(
      "routing",
      `the routing function returned ${String(index)}, and was given ${engines.map((engine) => engine.index).join(", ")}`,
    );
  }
}

/** The engine of a rank of which none is up. */
function ofRank(rank: number | undefined, ranks: ReadonlyMap<number, number>): number {
  for (const [index, other] of ranks) if (other === rank) return index;
  throw invalid("dataParallelRank", `there is no rank ${rank}; there are ${[...new Set(ranks.values())].join(", ")}`);
}

function leastOf(engines: readonly RoutableEngine[], keysOf: (engine: RoutableEngine) => readonly number[]): number {
  let least: { readonly index: number; readonly keys: readonly number[] } | undefined;
  for (const engine of engines) {
    const keys = keysOf(engine);
    if (least === undefined || isLess(keys, least.keys)) least = { index: engine.index, keys };
  }
  return (least as { readonly index: number }).index;
}

function isLess(keys: readonly number[], than: readonly number[]): boolean {
  for (const [place, key] of keys.entries()) {
    const other = than[place] ?? 0;
    if (key !== other) return key < other;
  }
  return false;
}

function invalid(path: string, why: string): EngineWireError {
  return new EngineWireError("invalid_argument", `generate: ${why}`, { path });
}
