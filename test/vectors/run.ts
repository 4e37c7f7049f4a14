import { isEngineWireError } from "../../src/wire/errors.ts";
import { decodeFrames, decodeFromSocket, encodeFrames, framesOf, hasUnsafeField, type Messages, nameOf, structOf } from "./message.ts";
import { type Noted, toHex, type Vector } from "./notation.ts";

/** What came of the entries of one file. */
export interface Report {
  /** Entries whose type this library has. */
  readonly considered: number;
  /** Entries with a 64-bit field beyond the safe range, which are refused by both directions. */
  readonly unsafe: number;
  /** Entries left out, with the reason. */
  readonly outOfScope: number;
  /** What did not go as it should. */
  readonly failures: readonly string[];
}

/** Whether two decoded values are the same; given by the test runner. */
export type Equals = (one: unknown, other: unknown) => boolean;

/** Deep enough for every vector that decoders must accept. */
const maxDepth = 1000;

function inScope(library: Messages, vector: Vector): boolean {
  return `decode${nameOf(vector.type)}` in library;
}

class Run {
  considered = 0;
  unsafe = 0;
  outOfScope = 0;
  readonly failures: string[] = [];
  readonly library: Messages;

  constructor(library: Messages) {
    this.library = library;
  }

  each(vectors: readonly Vector[], check: (vector: Vector) => string | undefined): Report {
    for (const vector of vectors) {
      if (!inScope(this.library, vector) || vector.reason === "framing") {
        this.outOfScope++;
        continue;
      }
      this.considered++;
      const failure = check(vector);
      if (failure !== undefined) this.failures.push(`${vector.name}: ${failure}`);
    }
    return this;
  }
}

function errorOf(run: () => unknown): unknown {
  try {
    run();
    return undefined;
  } catch (error) {
    return error;
  }
}

function codeOf(run: () => unknown): string | undefined {
  const error = errorOf(run);
  if (error === undefined) return undefined;
  return isEngineWireError(error) ? error.code : `not an EngineWireError: ${error}`;
}

function decodeOrCode(run: () => unknown): { readonly value: unknown } | { readonly code: string } {
  let value: unknown;
  const code = codeOf(() => {
    value = run();
  });
  return code === undefined ? { value } : { code };
}

function expectUnsafe(run: Run, vector: Vector, value: Noted): string | undefined {
  run.unsafe++;
  const { library } = run;
  const decoded = codeOf(() => decodeFrames(library, vector.type, framesOf(vector)));
  const encoded = codeOf(() => encodeFrames(library, vector.type, structOf(vector.type, value, true)));
  return decoded === "unsafe_integer" && encoded === "unsafe_integer" ? undefined : `decode ${decoded}, encode ${encoded}`;
}

function checkDecoded(run: Run, vector: Vector, value: Noted, equals: Equals): string | undefined {
  const frames = framesOf(vector);
  const expected = structOf(vector.type, value, false);
  for (const decode of [decodeFrames, (library: Messages) => decodeFromSocket(library, vector, frames, maxDepth)] as const) {
    const outcome = decodeOrCode(() => decode(run.library, vector.type, frames, maxDepth));
    if ("code" in outcome) return outcome.code;
    if (!equals(outcome.value, expected)) return "decoded to another value";
  }
  return undefined;
}

function checkEncoded(run: Run, vector: Vector, value: Noted, frames?: readonly string[]): string | undefined {
  const { type } = vector;
  const outcome = decodeOrCode(() => encodeFrames(run.library, type, structOf(type, value, true), maxDepth));
  if ("code" in outcome) return `encoding: ${outcome.code}`;
  return sameFrames(outcome.value as readonly Uint8Array[], framesOf(vector, frames)) ? undefined : "encoded to other bytes";
}

function sameFrames(ours: readonly Uint8Array[], theirs: readonly Uint8Array[]): boolean {
  return ours.map(toHex).join() === theirs.map(toHex).join();
}

/** Messages as the reference encoder writes them: decoded to their value, encoded to the same bytes. */
export function runCanonical(library: Messages, vectors: readonly Vector[], equals: Equals): Report {
  const run = new Run(library);
  return run.each(vectors, (vector) => {
    const value = vector.value as Noted;
    if (hasUnsafeField(vector.type, value)) return expectUnsafe(run, vector, value);
    return checkDecoded(run, vector, value, equals) ?? checkEncoded(run, vector, value);
  });
}

/** Forms that nobody is required to write but everybody accepts. */
export function runLenient(library: Messages, vectors: readonly Vector[], equals: Equals): Report {
  const run = new Run(library);
  return run.each(vectors, (vector) => {
    const value = vector.value as Noted;
    if (hasUnsafeField(vector.type, value)) return expectUnsafe(run, vector, value);
    const failure = checkDecoded(run, vector, value, equals);
    if (failure !== undefined || vector.canonical === null || vector.canonical === undefined) return failure;
    return checkEncoded(run, vector, value, vector.canonical);
  });
}

/** The codes that a reason for a refusal may have. */
const codesByReason: { readonly [reason: string]: readonly string[] } = {
  missing: ["missing_field"],
  tag: ["unknown_tag", "malformed"],
  range: ["unsafe_integer"],
  depth: ["nesting_too_deep"],
};

/** Fields of fewer bits, or without a sign: what is beyond their range is not refused for being inexact. */
const narrowFields = /^(output_ids|input_ids|bootstrap_room)\b/;

/** The place at fault as this library names it. */
function pathOf({ name, type, path = "" }: Vector): string {
  // The map's header promises more than is left, which is seen before any field.
  if (name === "truncated/hello/8-of-56") return type;
  const struct = nameOf(type);
  if (path === "" || path === "_tag") return struct;
  // a message that is a list begins with an index
  if (path.startsWith("[")) return struct + path;
  return `${struct}.${type === "ProfileReq" ? path.replace(/^type\b/, "kind") : path}`;
}

/** Whether an error names the place at fault, or one inside it. */
function isAt(error: { readonly path?: string }, path: string): boolean {
  const rest = error.path?.startsWith(path) ? error.path.slice(path.length) : undefined;
  return rest !== undefined && /^($|[.[])/.test(rest);
}

function refusal(library: Messages, vector: Vector): string | undefined {
  const frames = framesOf(vector);
  const narrow = vector.reason === "range" && narrowFields.test(vector.path ?? "");
  const allowed = narrow ? ["malformed"] : (codesByReason[vector.reason ?? ""] ?? ["malformed", "unsafe_integer"]);
  for (const [decode, path] of [
    [() => decodeFrames(library, vector.type, frames), pathOf(vector)],
    [() => decodeFromSocket(library, vector, frames), undefined],
  ] as const) {
    const error = errorOf(decode);
    if (error === undefined) return "accepted";
    if (!isEngineWireError(error)) return `not an EngineWireError: ${error}`;
    if (!allowed.includes(error.code)) return error.code;
    // An integer beyond the safe range may be met before what the entry is about.
    if (path !== undefined && error.code !== "unsafe_integer" && !isAt(error, path)) return `at ${error.path} instead of ${path}`;
  }
  return undefined;
}

/** Messages that every decoder refuses. */
export function runReject(library: Messages, vectors: readonly Vector[]): Report {
  return new Run(library).each(vectors, (vector) => refusal(library, vector));
}

/** Messages on which decoders differ, handled as their advice says. */
export function runDiffer(library: Messages, vectors: readonly Vector[], equals: Equals): Report {
  const run = new Run(library);
  return run.each(vectors, (vector) => {
    const { advice = "" } = vector;
    const frames = framesOf(vector);
    if (advice.startsWith("refuse")) return refusal(library, vector);
    if (advice.startsWith("last wins")) return checkDecoded(run, vector, vector.msgspec?.value as Noted, equals);
    const outcome = decodeOrCode(() => decodeFrames(library, vector.type, frames));
    if ("code" in outcome) {
      // Of these either outcome is right, as long as it is a clean one.
      return advice.startsWith("either") && /^[a-z_]+$/.test(outcome.code) ? undefined : outcome.code;
    }
    // Timestamps stay opaque extensions, so the bytes come out as they went in.
    if (!advice.startsWith("ext -1")) return undefined;
    return sameFrames(encodeFrames(library, vector.type, outcome.value), frames) ? undefined : "encoded to other bytes";
  });
}
