import type { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { RelayCounter } from "./context.ts";
import { loadPeer } from "./peer.ts";

/** Counts nothing. */
export const noMetrics: RelayCounter = { call: () => {}, client: () => {} };

/** Counts for Prometheus, in a registry of its own: two relays of one process do not meet in it. */
export class Metrics implements RelayCounter {
  readonly registry: Registry;
  readonly #calls: Counter<"operation" | "outcome">;
  readonly #durations: Histogram<"operation">;
  readonly #clients: Gauge;
  readonly #refused: Counter;

  private constructor(prometheus: typeof import("prom-client")) {
    this.registry = new prometheus.Registry();
    const registers = [this.registry];
    this.#calls = new prometheus.Counter({
      name: "enginewire_relay_calls_total",
      help: "Calls of clients that have ended, by operation and outcome.",
      labelNames: ["operation", "outcome"],
      registers,
    });
    this.#durations = new prometheus.Histogram({
      name: "enginewire_relay_call_seconds",
      help: "From a call's arrival until its end.",
      labelNames: ["operation"],
      buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000],
      registers,
    });
    this.#clients = new prometheus.Gauge({ name: "enginewire_relay_clients", help: "Clients that are let in.", registers });
    this.#refused = new prometheus.Counter({
      name: "enginewire_relay_refused_clients_total",
      help: "Clients that were not let in.",
      registers,
    });
  }

  /** Loads `prom-client`. Throws `transport_unavailable`. */
  static async load(): Promise<Metrics> {
    return new Metrics(await loadPeer("prom-client", () => import("prom-client")));
  }

  call(operation: string, outcome: string, durationMs: number): void {
    this.#calls.inc({ operation, outcome });
    this.#durations.observe({ operation }, durationMs / 1000);
  }

  client(what: "in" | "out" | "refused"): void {
    if (what === "refused") this.#refused.inc();
    else this.#clients.inc(what === "in" ? 1 : -1);
  }
}
