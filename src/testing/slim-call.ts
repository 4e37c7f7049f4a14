import { decodeControlCallSlim } from "../../generated/tokenspeed/decoders.ts";
import { type Operation, operations, PROFILE_STOP } from "../../generated/tokenspeed/operations.ts";
import { controlRequestOf } from "./control-request.ts";
import type { EngineMessage } from "./messages.ts";

/** An operation, and what a method of the second dialect fixes of its request. */
interface Method {
  readonly operation: Operation;
  /** The key of each property among the arguments. */
  readonly keys: Readonly<Record<string, string>>;
  readonly fixed: Readonly<Record<string, unknown>>;
}

/**
 * What a request says where a body leaves it out and the wire has no default, or another one: the defaults of the
 * engine's HTTP routes, whose bodies the gateway passes on.
 */
const bodyDefaults: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  PauseSchedulerReqInput: { mode: "wait" },
  UpdateWeightsFromDistributedReqInput: { flushCache: false, weightVersion: null },
  UpdateWeightsFromMooncakeReqInput: { flushCache: true, weightVersion: null },
  ProfileReq: { kind: PROFILE_STOP },
};

function methodsOf(operation: Operation): [string, Method][] {
  const { slim } = operation;
  if (slim === undefined) return [];
  const { method, arguments: keys, choice } = slim;
  const fixed = choice === undefined ? {} : { [choice.property]: choice.value };
  const first: [string, Method] = [method, { operation, keys, fixed }];
  return choice === undefined ? [first] : [first, [choice.otherwise, { operation, keys: {}, fixed: {} }]];
}

const methods = /* @__PURE__ */ new Map<string, Method>(/* @__PURE__ */ Object.values<Operation>(operations).flatMap(methodsOf));

/**
 * Reads a control call of the second dialect. One that has an id is always answered, so what is wrong with it becomes a
 * refusal: nobody knows what a real engine says there, and a caller must not wait for ever. Throws for one that has none.
 */
export function readSlimCall(payload: Uint8Array): EngineMessage {
  const { callId, method: name, args } = decodeControlCallSlim(payload);
  const refused = (message: string): EngineMessage => ({ kind: "refused_call", callId, method: name, message });
  const method = methods.get(name);
  if (method === undefined) return refused(`unknown control method: ${name}`);
  const { operation, keys, fixed } = method;
  try {
    const values = { ...bodyDefaults[operation.request], ...bodyOf(args, keys), ...fixed };
    return { kind: "control", request: controlRequestOf(operation.request, values), callId };
  } catch (error) {
    return refused(`Invalid request: ${(error as Error).message}`);
  }
}

/** The properties that a call's body gives. A method without arguments does not look at what it is called with. */
function bodyOf([body]: readonly unknown[], keys: Readonly<Record<string, string>>): Record<string, unknown> {
  const properties = Object.entries(keys);
  if (body === undefined || properties.length === 0) return {};
  if (typeof body !== "object" || body === null || Array.isArray(body) || body instanceof Uint8Array) {
    throw new TypeError("request body must be a JSON object");
  }
  // a map with keys that look like array indexes is read as a `Map`
  const given = new Map<unknown, unknown>(body instanceof Map ? body : Object.entries(body));
  return Object.fromEntries(properties.filter(([, key]) => given.has(key)).map(([property, key]) => [property, given.get(key)]));
}
