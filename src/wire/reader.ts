import { Failure, kindOf, toWireError } from "./failure.ts";
import { defaultMaxDepth } from "./limits.ts";
import { isBytes } from "./values.ts";
import { checkMaxDepth } from "./writer.ts";

const noFrames: readonly Uint8Array[] = [];

/**
 * A message that is being decoded. Reads behind its end give `undefined`, which no format byte equals; everything that
 * takes more than one byte is checked against `end` first.
 */
export class Reader {
  readonly bytes: Uint8Array;
  readonly end: number;
  /** Where the next value begins. */
  position = 0;
  /** How many containers are open. */
  depth = 0;
  /** How many may be. */
  readonly maxDepth: number;
  /** All frames of the message, the payload first; empty where it is but one. */
  frames: readonly Uint8Array[] = noFrames;
  private view: DataView | undefined = undefined;

  constructor(bytes: Uint8Array, maxDepth: number) {
    this.bytes = bytes;
    this.end = bytes.length;
    this.maxDepth = maxDepth;
  }

  /** The message as a DataView, made on first need: making one costs more than decoding a small message. */
  dataView(): DataView {
    this.view ??= new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength);
    return this.view;
  }
}

/** Something in the input that cannot be. */
export function malformed(field: string, expected: string, found: string, offset: number): Failure {
  return new Failure("malformed", field, expected, found, offset);
}

/** The input ends inside a value. */
export function truncated(reader: Reader, field: string): Failure {
  return malformed(field, "more bytes", "the end of the message", reader.end);
}

/** Another type than the field's, or the end of the input. */
export function unexpected(reader: Reader, field: string, expected: string): Failure {
  const { position } = reader;
  return malformed(
    field,
    expected,
    position >= reader.end ? "the end of the message" : formatName(reader.bytes[position] as number),
    position,
  );
}

/** The MessagePack type a format byte announces. */
export function formatName(format: number): string {
  if (format < 0x80 || format >= 0xe0) return "int";
  if (format < 0x90) return "map";
  if (format < 0xa0) return "array";
  if (format < 0xc0) return "str";
  if (format >= 0xcc && format <= 0xd3) return "int";
  switch (format) {
    case 0xc0:
      return "nil";
    case 0xc1:
      return "the reserved byte c1";
    case 0xc2:
    case 0xc3:
      return "bool";
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return "bin";
    case 0xca:
    case 0xcb:
      return "float";
    case 0xd9:
    case 0xda:
    case 0xdb:
      return "str";
    case 0xdc:
    case 0xdd:
      return "array";
    case 0xde:
    case 0xdf:
      return "map";
    default:
      return "ext";
  }
}

/** Enters an array, a map or a struct. The caller takes `depth` back when it leaves. */
export function enterReader(reader: Reader, field: string): void {
  if (++reader.depth > reader.maxDepth) {
    throw new Failure("nesting_too_deep", field, `at most ${reader.maxDepth} levels of nesting`, "more", reader.position);
  }
}

/** Decodes one message, which must fill the input exactly. */
export function decodeWith<Value>(
  read: (reader: Reader, field: string) => Value,
  bytes: Uint8Array,
  name: string,
  maxDepth: number = defaultMaxDepth,
): Value {
  if (maxDepth !== defaultMaxDepth) checkMaxDepth(maxDepth);
  try {
    if (!(bytes instanceof Uint8Array) && !isBytes(bytes)) throw new Failure("invalid_argument", name, "a Uint8Array", kindOf(bytes));
    const reader = new Reader(bytes, maxDepth);
    const value = read(reader, name);
    if (reader.position !== reader.end) {
      throw malformed(name, "the end of the message", `${reader.end - reader.position} bytes more`, reader.position);
    }
    return value;
  } catch (error) {
    throw toWireError(error);
  }
}
