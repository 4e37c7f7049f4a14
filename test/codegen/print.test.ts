import { expect, test } from "vitest";
import { bool, constant, i64, list, literal, map, nullable, ref, str, tensor, u64, union, value } from "../../schema/dsl.ts";
import { call, declarationOf, emitFiles, plain, protocolOf, small } from "./small-schema.ts";

function fileOf(name: string, ...args: Parameters<typeof emitFiles>): string {
  return emitFiles(...args).get(name) ?? "";
}

const pause = small(
  "Pause",
  [plain("mode", literal("abort", "wait"), { default: "abort" }), plain("max_age", nullable(i64), { default: null }), plain("room", u64)],
  { layout: "array", tagged: true },
);

test("a struct's types: what decoders return and what encoders accept", () => {
  const types = fileOf("types.ts", protocolOf([pause]));
  expect(declarationOf(types, "Pause")).toBe(`/** A Pause. */
export interface Pause {
  /** Tells it from the other structs of its union. */
  readonly $tag: "Pause";
  /** The mode. Default: \`"abort"\`. */
  mode: "abort" | "wait";
  /** The max_age. Default: \`null\`. On the wire: \`max_age\`. */
  maxAge: number | null;
  /** The room. */
  room: bigint;
}`);
  expect(declarationOf(types, "PauseInit")).toBe(`/** A Pause. As encoders accept it. */
export interface PauseInit {
  /** May be given, as decoders do. */
  readonly $tag?: "Pause" | undefined;
  /** The mode. Default: \`"abort"\`. */
  readonly mode?: "abort" | "wait" | undefined;
  /** The max_age. Default: \`null\`. On the wire: \`max_age\`. */
  readonly maxAge?: number | bigint | null | undefined;
  /** The room. */
  readonly room: number | bigint;
}`);
});

test("an encoder: head, defaults as bytes, required fields", () => {
  const encoders = fileOf("encoders.ts", protocolOf([pause]));
  expect(encoders).toContain('const headOfPause = /* @__PURE__ */ prepareHead("\\x94\\xa5Pause");');
  expect(declarationOf(encoders, "writePause")).toBe(`function writePause(writer: Writer, init: unknown, field: string): void {
  try {
    checkProperties(init, propertiesOfPause);
    const { $tag, mode, maxAge, room } = init as PauseInit;
    if ($tag !== undefined && $tag !== "Pause") throw invalidValue("$tag", "\\"Pause\\"", $tag);
    writeHead(writer, headOfPause);
    if (mode === undefined) {
      writeRaw(writer, "\\xa5abort");
    } else {
      switch (mode) {
        case "abort":
          writeRaw(writer, "\\xa5abort");
          break;
        case "wait":
          writeRaw(writer, "\\xa4wait");
          break;
        default:
          throw invalidValue("mode", "\\"abort\\" or \\"wait\\"", mode);
      }
    }
    if (maxAge === undefined || maxAge === null) writeNil(writer);
    else writeInt64(writer, maxAge, "max_age");
    if (room === undefined) throw missingField("room");
    writeUint64(writer, room, "room");
  } catch (error) {
    throw within(error, field);
  }
}`);
});

test("a decoder: one expression for each field, extra elements skipped", () => {
  expect(
    declarationOf(fileOf("decoders.ts", protocolOf([pause])), "readFieldsOfPause"),
  ).toBe(`function readFieldsOfPause(reader: Reader, count: number): Pause {
  const mode: "abort" | "wait" = count > 0 ? readAbortOrWait(reader, "mode") : "abort";
  const maxAge: number | null = count > 1 ? (readNil(reader) ? null : readInt64(reader, "max_age")) : null;
  const room: bigint = count > 2 ? readUint64(reader, "room") : missingElement(reader, "room");
  if (count > 3) skipValues(reader, count - 3, "");
  return { $tag: "Pause", mode, maxAge, room };
}`);
});

test("a map layout: keys in order, an older key, required entries", () => {
  const ready = small("Ready", [plain("status", str), plain("granularity", i64, { default: 0, alias: "block_size" })]);
  const files = emitFiles(protocolOf([ready]));
  expect(
    declarationOf(files.get("decoders.ts") ?? "", "readFieldsOfReady"),
  ).toBe(`function readFieldsOfReady(reader: Reader, count: number): Ready {
  let status: string | undefined;
  let granularity: number = 0;
  for (let i = 0; i < count; i++) {
    switch (readRepeatedStr(reader, "")) {
      case "status":
        status = readRepeatedStr(reader, "status");
        break;
      case "granularity":
      case "block_size":
        granularity = readInt64(reader, "granularity");
        break;
      default:
        skipValues(reader, 1, "");
    }
  }
  if (status === undefined) missingElement(reader, "status");
  return { status, granularity };
}`);
  expect(files.get("encoders.ts")).toContain('writeRaw(writer, "\\xa6status");');
});

test("types that the runtime has no function for get one, once", () => {
  const shapes = small("Shapes", [plain("a", list(list(bool))), plain("b", list(list(bool))), plain("c", map(list(str)))]);
  const encoders = fileOf("encoders.ts", protocolOf([shapes]));
  expect(encoders.match(/^function writeBoolListList/gm)).toHaveLength(1);
  expect(encoders).toContain('writeMap(writer, c, "c", writeStrList);');
});

test("a struct that can hold a tensor is frames, and a value what its type is", () => {
  const inner = small("Inner", [plain("t", nullable(tensor))]);
  const outer = small("Outer", [plain("inner", list(ref("Inner")))]);
  const files = emitFiles(protocolOf([inner, outer, small("Plain", [])], { values: [value("Names", list(str), "Some names.")] }));
  const [encoders = "", decoders = "", types = ""] = ["encoders.ts", "decoders.ts", "types.ts"].map((name) => files.get(name));
  for (const name of ["Inner", "Outer"]) {
    expect(encoders).toContain(`export function encode${name}(init: ${name}Init, maxDepth?: number): Frames {`);
    expect(decoders).toContain(`export function decode${name}(frames: readonly Uint8Array[], maxDepth?: number): ${name} {`);
  }
  expect(encoders).toContain("export function encodePlain(init: PlainInit, maxDepth?: number): Uint8Array<ArrayBuffer> {");
  expect(types).toContain('import type { Tensor } from "enginewire/wire";');
  expect(types).toContain("/** Some names. */\nexport type Names = string[];");
  expect(types).toContain("/** Some names. As encoders accept it. */\nexport type NamesInit = readonly string[];");
  expect(declarationOf(encoders, "encodeNames")).toBe(`/** Encodes \`Names\`. \`maxDepth\` limits nesting; 64 by default. */
export function encodeNames(init: NamesInit, maxDepth?: number): Uint8Array<ArrayBuffer> {
  return encodeWith(writeNames, init, "Names", maxDepth);
}`);
  expect(files.get("zod.ts")).toContain("export const NamesSchema: z.ZodType<NamesInit> = ");
});

test("replies and operations of a protocol", () => {
  const operations = [call("pause", { timeoutMs: 5 }), call("stop", { effect: "admission" })];
  const files = emitFiles(protocolOf([], { operations, constants: [constant("ANSWER", 42, "An answer.")] }));
  expect(declarationOf(files.get("replies.ts") ?? "", "replyTags")).toBe(`/** The tag of the reply to each request's tag. */
export const replyTags = {
  PauseRequest: "PauseReply",
  StopRequest: "StopReply",
} as const;`);
  expect(declarationOf(files.get("operations.ts") ?? "", "ANSWER")).toBe("/** An answer. */\nexport const ANSWER = 42;");
  expect(files.get("operations.ts")).toContain(`  pause: {
    name: "pause",
    request: "PauseRequest",
    reply: "PauseReply",
    effect: "read",
    answers: "at once",
    timeoutMs: 5,`);
  expect(declarationOf(files.get("operations.ts") ?? "", "OperationTypes")).toContain(
    "readonly pause: { readonly init: PauseRequestInit; readonly reply: PauseReply };",
  );
});

test("a union reads its member by the tag", () => {
  const operations = [call("pause")];
  const unions = [union("Request", { doc: "Any request.", members: "requests" })];
  const decoders = emitFiles(protocolOf([], { operations, unions })).get("decoders.ts") ?? "";
  expect(declarationOf(decoders, "readRequest")).toContain(`      case "PauseRequest":
        step = "PauseRequest";
        return readFieldsOfPauseRequest(reader, count);`);
});

test("a validator: strict, optional where there is a default, lazy where structs nest", () => {
  const inner = small("Inner", [plain("room", u64)]);
  const outer = small("Outer", [plain("inner", ref(inner)), plain("names", list(str), { default: [] })]);
  expect(declarationOf(fileOf("zod.ts", protocolOf([outer, inner])), "OuterSchema")).toContain(`z.strictObject({
  inner: z.lazy(() => InnerSchema),
  names: z.array(z.string()).optional(),
})`);
});

test("every file begins with what it is made from, and without a date", () => {
  for (const text of emitFiles(protocolOf([pause])).values()) {
    expect(text).toMatch(
      /^\/\/ Generated by enginewire-codegen from schema\/tiny \(release 0\.1\.0, schema [0-9a-f]{16}\)\. Do not edit:\n\/\/ change the schema and run `enginewire-codegen generate`\.\n\/\* eslint-disable \*\/\n/,
    );
    expect(text).not.toMatch(/\r|20\d\d-\d\d/);
  }
});

test("the hash changes with anything the schema says", () => {
  const hashOf = (doc: string): string | undefined =>
    /schema ([0-9a-f]{16})/.exec(fileOf("types.ts", protocolOf([small("Ready", [plain("status", str, { doc })])])))?.[1];
  expect(hashOf("One thing.")).not.toBe(hashOf("Another thing."));
  expect(hashOf("One thing.")).toBe(hashOf("One thing."));
});
