import { EngineWireError, type ErrorCode } from "./errors.ts";

/**
 * What goes wrong inside an encoder or a decoder. It collects its path while it passes the functions it came from, so
 * that no path is built as long as nothing fails; `toWireError` makes the public error of it.
 */
export class Failure {
  readonly code: ErrorCode;
  readonly expected: string;
  readonly found: string;
  readonly offset: number | undefined;
  readonly advice: string;
  path: string;

  constructor(code: ErrorCode, path: string, expected: string, found: string, offset?: number, advice = "") {
    this.code = code;
    this.path = path;
    this.expected = expected;
    this.found = found;
    this.offset = offset;
    this.advice = advice;
  }
}

/** Puts a field's name, an index or a key before the path of a failure. Other exceptions pass through, and so does an empty step. */
export function within(error: unknown, step: string | number): unknown {
  if (error instanceof Failure && step !== "") {
    const { path } = error;
    const first = typeof step === "number" ? `[${step}]` : step;
    error.path = path === "" || path.startsWith("[") ? first + path : `${first}.${path}`;
  }
  return error;
}

/** A map's key as a step of a path: bare where it reads like a name, shortened where it is long. */
export function keyStep(key: unknown): string {
  if (typeof key === "number" || typeof key === "bigint") return `[key ${String(key).slice(0, 40)}]`;
  if (typeof key !== "string") return `[key: ${kindOf(key)}]`;
  const short = key.length > 40 ? `${key.slice(0, 40)}…` : key;
  return /^[A-Za-z_$][\w$]*$/.test(short) ? short : `[${JSON.stringify(short)}]`;
}

/** The public error of a failure; anything else is returned as it is. */
export function toWireError(error: unknown): unknown {
  if (!(error instanceof Failure)) return error;
  const { code, path, expected, found, offset, advice } = error;
  const at = offset === undefined ? "" : ` at byte ${offset}`;
  const details = offset === undefined ? { path, expected, found } : { path, expected, found, offset };
  return new EngineWireError(code, `${path === "" ? "" : `${path}: `}expected ${expected}, found ${found}${at}${advice}`, details);
}

/** Names a JavaScript value's kind for an error, never the value itself, unless it is a short number or string. */
export function kindOf(value: unknown): string {
  switch (typeof value) {
    case "string":
      return value.length <= 40 && isWellFormed(value) ? `the string ${JSON.stringify(value)}` : `a string of ${value.length} characters`;
    case "number":
      return `the number ${Object.is(value, -0) ? "-0" : value}`;
    case "bigint":
      return -(2n ** 128n) < value && value < 2n ** 128n ? `the bigint ${value}n` : "a bigint beyond 128 bits";
    case "boolean":
      return String(value);
    case "undefined":
      return "undefined";
    case "object":
      return value === null ? "null" : kindOfObject(value);
    default:
      return `a ${typeof value}`;
  }
}

function kindOfObject(value: object): string {
  if (Array.isArray(value)) return "an array";
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  if (tag !== "Object") return `a value of type ${tag.slice(0, 40)}`;
  const prototype: unknown = Object.getPrototypeOf(value);
  const name: unknown =
    typeof prototype === "object" && prototype !== null && "constructor" in prototype ? readName(prototype.constructor) : "";
  return typeof name === "string" && name !== "" && name !== "Object" ? `an object of class ${name.slice(0, 40)}` : "an object";
}

function readName(value: unknown): unknown {
  return typeof value === "function" ? value.name : "";
}

/** Whether a string has no lone surrogates, so that UTF-8 can hold it. */
export function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}
