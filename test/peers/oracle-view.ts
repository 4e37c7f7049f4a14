import { Ext, type Tensor } from "../../src/wire/index.ts";
import { toHex } from "../vectors/notation.ts";
import { dataPlane, structs, type WireType } from "./schema-structs.ts";

/** A value without a type as the oracle writes it in JSON. */
function looseView(value: unknown): unknown {
  if (typeof value === "bigint") return value >= -(2n ** 53n) && value <= 2n ** 53n ? Number(value) : String(value);
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array) return { $bin: toHex(value) };
  if (value instanceof Ext) return { $ext: [value.type, toHex(value.data)] };
  if (Array.isArray(value)) return value.map(looseView);
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  const named = entries.every(([key]) => typeof key === "string" && !key.startsWith("$"));
  return named
    ? Object.fromEntries(entries.map(([key, item]) => [key, looseView(item)]))
    : { $map: entries.map((entry) => entry.map(looseView)) };
}

/** A decoded value of a type as the oracle writes it, structs by wire names. */
export function oracleView(type: WireType, value: unknown): unknown {
  switch (type.kind) {
    case "nullable":
      return value === null ? null : oracleView(type.inner, value);
    case "list":
    case "set":
      return (value as readonly unknown[]).map((item) => oracleView(type.item, item));
    case "map": {
      const entries = value instanceof Map ? [...value] : Object.entries(value as object);
      return Object.fromEntries(entries.map(([key, item]) => [key, oracleView(type.value, item)]));
    }
    case "tensor": {
      const { dtype, shape, data } = value as Tensor;
      return { dtype, shape, data: toHex(data) };
    }
    case "struct": {
      const { fields = [], tagged = false } = structs.get(type.name) ?? dataPlane.get(type.name) ?? {};
      const values = value as { readonly [property: string]: unknown };
      const views = fields.map(({ name, type: inner, property }) => {
        // the crate takes keys of any type in the maps of the control plane
        const loose = structs.has(type.name) && inner.kind === "map";
        return [name, loose ? looseView(values[property]) : oracleView(inner, values[property])];
      });
      return { ...(tagged && { tag: type.name }), ...Object.fromEntries(views) };
    }
    default:
      return looseView(value);
  }
}
