const floatBrand: unique symbol = /* @__PURE__ */ Symbol.for("enginewire.Float") as never;
const extBrand: unique symbol = /* @__PURE__ */ Symbol.for("enginewire.Ext") as never;

/** A number that is written as a float even where it is integral. */
export class Float {
  /** The number. */
  readonly value: number;

  constructor(value: number) {
    this.value = value;
    Object.defineProperty(this, floatBrand, { value: true });
  }
}

/**
 * Forces a number inside an `any` value to be a float on the wire. Without it an integral number is written as an
 * integer, as `1` is in Python; fields of type float need no help.
 */
export function float(value: number): Float {
  return new Float(value);
}

/**
 * A MessagePack extension value, kept as it is: its type and its bytes. That includes type -1, MessagePack's timestamp,
 * whose precision and range no JavaScript date holds.
 */
export class Ext {
  /** The extension type, -128 to 127. */
  readonly type: number;
  /** The payload. */
  readonly data: Uint8Array;

  constructor(type: number, data: Uint8Array) {
    this.type = type;
    this.data = data;
    Object.defineProperty(this, extBrand, { value: true });
  }
}

/** Whether a value is a `Float`, from this copy of the package or another. */
export function isFloat(value: object): value is Float {
  return floatBrand in value;
}

/** Whether a value is an `Ext`, from this copy of the package or another. */
export function isExt(value: object): value is Ext {
  return extBrand in value;
}

/** Whether a value is a `Uint8Array` (or a subclass such as Node's Buffer), also from another realm. */
export function isBytes(value: unknown): value is Uint8Array {
  return ArrayBuffer.isView(value) && (value as Uint8Array)[Symbol.toStringTag] === "Uint8Array";
}

/**
 * A map as decoders return it: a plain object where every key is a string that JavaScript keeps in order, a `Map` where
 * one is not a string, is `__proto__`, or looks like an array index.
 */
export type DynamicMap<Key, Value> = { [key: string]: Value } | Map<Key, Value>;

/** A map as encoders accept it: a plain object or a `Map`. */
export type DynamicMapInit<Key, Value> = { readonly [key: string]: Value } | ReadonlyMap<Key, Value>;
