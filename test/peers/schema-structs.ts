import type { DefaultValue, WireType } from "../../schema/dsl.ts";
import { tokenspeed } from "../../schema/tokenspeed/index.ts";

export type { WireType };

/** A field as the schema describes it, with the property it is in TypeScript. */
export interface FieldDefinition {
  readonly name: string;
  readonly property: string;
  readonly type: WireType;
  readonly default?: DefaultValue;
}

/** A struct with its base fields first, as on the wire. */
export interface StructDefinition {
  readonly name: string;
  readonly tagged: boolean;
  readonly fields: readonly FieldDefinition[];
}

const camelCased = (name: string) => name.replaceAll(/_+(.)/g, (_, letter: string) => letter.toUpperCase());

const byName = (list: typeof tokenspeed.structs): ReadonlyMap<string, StructDefinition> =>
  new Map(
    list.map(({ name, tagged = false, extends: base, fields }) => [
      name,
      { name, tagged, fields: [...(base?.fields ?? []), ...fields].map((field) => ({ property: camelCased(field.name), ...field })) },
    ]),
  );
const handshake = tokenspeed.structs.filter(({ definedIn }) => definedIn === "zmq_wire.py");

/** The structs of the control plane by name: requests, replies and the handshake; not the gateway's dialect. */
export const structs = byName([...tokenspeed.operations.flatMap(({ request, reply }) => [request, reply]), ...handshake]);

/** The structs of the data plane by name: requests for tokens with what they hold, and their results. */
export const dataPlane = byName(
  tokenspeed.structs.filter((struct) => !handshake.includes(struct) && struct.definedIn !== "the SMG gateway"),
);

/** A decoded message's fields by their names on the wire. */
export function wireFields(message: { readonly $tag: string }): Record<string, unknown> {
  const values = message as unknown as Readonly<Record<string, unknown>>;
  return Object.fromEntries((structs.get(message.$tag)?.fields ?? []).map(({ name, property }) => [name, values[property]]));
}
