import { bool, bytes, f64, field, i64, list, nullable, ref, str, struct, tuple, u16, u32 } from "../dsl.ts";
import { Failure } from "./failure.ts";

export const Hello = struct("Hello", {
  doc: "The first message of a client.",
  layout: "array",
  tagged: true,
  fields: [
    field("versions", list(u16), { doc: "Versions of this protocol that the client speaks, best first." }),
    field("token", nullable(str), { default: null, doc: "The credential, unless it came in the list of subprotocols." }),
    field("client", str, { default: "", doc: "What the client calls itself, for the audit log; at most 120 characters count." }),
  ],
});

export const EngineLoad = struct("EngineLoad", {
  doc: "How busy an engine last said that it is; all but the last are 0 where the relay has nothing in flight there.",
  layout: "array",
  fields: [
    field("running", i64, { doc: "Requests that ran." }),
    field("waiting", i64, { doc: "Requests that waited." }),
    field("kv_active_pages", i64, { doc: "Pages of its cache that were in use." }),
    field("kv_total_pages", i64, { doc: "Pages of its cache." }),
    field("age_ms", f64, { doc: "How long ago that was, in milliseconds." }),
  ],
});

export const EngineView = struct("EngineView", {
  doc: "What the relay knows of an engine.",
  layout: "array",
  fields: [
    field("index", u16, { doc: "Its index on the wire." }),
    field("state", str, { doc: "`up` or `dead`." }),
    field("control", bool, { doc: "Whether it answers control operations." }),
    field("dialect", str, { doc: "How they are written to it: `tagged` or `slim`." }),
    field("release", nullable(str), { doc: "Its release, where that is known." }),
    field("registration", bytes, { doc: "Its registration, an encoded `EngineCoreReadyResponse`; empty in `EnginesChanged`." }),
    field("scheduler", str, { doc: "What the relay's guard knows: `running`, `paused`, `frozen`, `asleep`, `held` or `unknown`." }),
    field("draining", nullable(str), { doc: "`pause` or `release` while one drains." }),
    field("memory", list(tuple(str, str)), { doc: "Memory regions, each `resident`, `released` or `unknown`." }),
    field("weight_group", str, { doc: "`joined`, `none` or `unknown`." }),
    field("profiler", str, { doc: "`running`, `off` or `unknown`." }),
    field("load", nullable(ref(EngineLoad)), { default: null, doc: "Its load; nil before its first output, and in `EnginesChanged`." }),
  ],
});

export const Limits = struct("Limits", {
  doc: "What the relay takes from one client.",
  layout: "array",
  fields: [
    field("message_bytes", u32, { doc: "Longest message, in bytes; a longer one closes with 1009." }),
    field("calls_in_flight", u32, { doc: "Calls under way at a time." }),
    field("calls_per_second", u32, { doc: "Calls in one second, and in one burst, with one credential from one address." }),
    field("list_length", u32, { doc: "Elements in one list or map of a request." }),
    field("idle_ms", u32, { doc: "Silence after which the connection is closed, in milliseconds." }),
    field("streams", u32, { doc: "Streams open at a time." }),
  ],
});

export const Welcome = struct("Welcome", {
  doc: "The answer to `Hello`: calls may follow.",
  layout: "array",
  tagged: true,
  fields: [
    field("version", u16, { doc: "The version spoken from here on." }),
    field("relay", str, { doc: "The relay's own release." }),
    field("session", str, { doc: "Name of this session in the relay's audit log." }),
    field("identity", str, { doc: "Whom the credential names." }),
    field("scopes", str, { doc: "What the credential allows: effects of operations and further scopes, separated by spaces." }),
    field("engines", list(bytes), { doc: "The engines that the credential allows, in index order, each an encoded `EngineView`." }),
    field("limits", ref(Limits), { doc: "What the relay takes." }),
    field("heartbeat_ms", u32, { doc: "How often the client should send `Ping`, in milliseconds." }),
    field("expires_in_ms", nullable(f64), { doc: "When the credential expires, in milliseconds from now." }),
  ],
});

export const EnginesChanged = struct("EnginesChanged", {
  doc: "Engines whose state is not what it was.",
  layout: "array",
  tagged: true,
  fields: [field("engines", list(ref(EngineView)), { doc: "The engines that changed, without their registrations." })],
});

export const Ping = struct("Ping", {
  doc: "Asks for a `Pong`: page scripts do not see the protocol's own pings.",
  layout: "array",
  tagged: true,
  fields: [field("nonce", u32, { doc: "Comes back." })],
});

export const Pong = struct("Pong", {
  doc: "The answer to `Ping`.",
  layout: "array",
  tagged: true,
  fields: [field("nonce", u32, { doc: "That of the `Ping`." })],
});

export const GoingAway = struct("GoingAway", {
  doc: "The relay takes no more calls on this connection; those under way are finished, then it closes.",
  layout: "array",
  tagged: true,
  fields: [
    field("reason", str, { doc: "A sentence." }),
    field("reconnect", bool, { doc: "Whether to connect again at once, as with a new credential, or with a delay." }),
  ],
});

export const Refused = struct("Refused", {
  doc: "A message was refused.",
  layout: "array",
  tagged: true,
  fields: [
    field("id", nullable(u32), {
      doc: "The call it named; a call of that id that is under way goes on. Without one, the connection closes.",
    }),
    field("failure", ref(Failure), { doc: "Why." }),
  ],
});
