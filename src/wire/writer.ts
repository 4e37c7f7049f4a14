import { Failure, kindOf, toWireError } from "./failure.ts";
import { defaultMaxDepth, highestMaxDepth } from "./limits.ts";

const slabSize = 1 << 16;
/** A message starts in the slab only where this much of it is left, so that a small one does not grow. */
const slabTail = 1 << 12;

/**
 * Where an encoder puts its bytes. Small messages follow one another in a slab of 64 KiB and are handed out as views of
 * it; the slab is never rewritten, so a view stays valid for as long as anyone holds it. A message that outgrows the
 * slab moves to a block of its own.
 */
export class Writer {
  /** The block that is written to. */
  bytes: Uint8Array<ArrayBuffer>;
  /** The same block, for integers and floats of several bytes. */
  view: DataView<ArrayBuffer>;
  /** Where the next byte goes. */
  position = 0;
  /** How many containers are open. */
  depth = 0;
  /** How many may be. */
  maxDepth = defaultMaxDepth;
  /** Where bytes go that are a frame of their own; absent where the message has one frame. */
  frames: Uint8Array<ArrayBuffer>[] | undefined = undefined;
  /** Whether a message is being written. */
  busy = false;
  /** Where the message begins; a block that grows moves it. */
  start = 0;
  /** The block's buffer: asking a view for it takes longer than a small message. */
  private buffer: ArrayBuffer;
  private slab: Uint8Array<ArrayBuffer>;
  private slabView: DataView<ArrayBuffer>;
  private slabPosition = 0;
  private largest = 0;
  /** How much of the slab the next message should find: about what the one before took, for batches come one after another. */
  private room = slabTail;

  constructor() {
    this.slab = new Uint8Array(slabSize);
    this.buffer = this.slab.buffer;
    this.slabView = new DataView(this.buffer);
    this.bytes = this.slab;
    this.view = this.slabView;
  }

  /** Begins a message. */
  begin(maxDepth: number): void {
    // A slab whose buffer was transferred elsewhere has length 0, and is replaced like a full one.
    if (this.slab.length - this.slabPosition < this.room) {
      this.slab = new Uint8Array(slabSize);
      this.buffer = this.slab.buffer;
      this.slabView = new DataView(this.buffer);
      this.slabPosition = 0;
      this.bytes = this.slab;
      this.view = this.slabView;
    }
    this.busy = true;
    this.start = this.position = this.slabPosition;
    this.depth = 0;
    this.maxDepth = maxDepth;
  }

  /** Ends the message and returns its bytes, which are the caller's. */
  finish(): Uint8Array<ArrayBuffer> {
    const { bytes, start, position } = this;
    if (bytes.length === 0) throw detached();
    if (bytes === this.slab) this.slabPosition = position;
    else this.largest = position;
    const length = position - start;
    // What has no place beside another one in a slab moves out of it in any case.
    this.room = length > slabTail && length <= slabSize / 2 ? length + (length >> 3) : slabTail;
    return new Uint8Array(this.buffer, start, position - start);
  }

  /** Goes back to the slab from a block of the message's own, which is not held on to. */
  end(): void {
    this.busy = false;
    if (this.bytes !== this.slab) {
      this.bytes = this.slab;
      this.buffer = this.slab.buffer;
      this.view = this.slabView;
    }
  }

  /** Moves the message to a larger block. */
  grow(length: number): void {
    const { bytes, start, position } = this;
    if (bytes.length === 0) throw detached();
    const needed = position - start + length;
    // A message that was large is likely to come again, about as large.
    const size = Math.max(needed + Math.min(needed, 1 << 22), Math.min(this.largest, needed * 32) + 64);
    const block = new Uint8Array(size);
    block.set(bytes.subarray(start, position));
    this.bytes = block;
    this.buffer = block.buffer;
    this.view = new DataView(this.buffer);
    this.position = position - start;
    this.start = 0;
  }
}

// Only an input that runs code while it is encoded can do this: a getter that transfers an earlier message's buffer.
function detached(): Failure {
  return new Failure("invalid_value", "", "a buffer that stays in place while it is written to", "one that was transferred away");
}

/** Makes room for so many bytes. */
export function reserve(writer: Writer, length: number): void {
  if (writer.position + length > writer.bytes.length) writer.grow(length);
}

/** A limit on nesting as the caller gave it; refused where it is not a number from 1 to 1000. */
export function checkMaxDepth(maxDepth: number): number {
  if (Number.isInteger(maxDepth) && maxDepth >= 1 && maxDepth <= highestMaxDepth) return maxDepth;
  throw toWireError(new Failure("invalid_argument", "maxDepth", `an integer from 1 to ${highestMaxDepth}`, kindOf(maxDepth)));
}

/** Enters an array, a map or a struct. The caller takes `depth` back when it leaves. */
export function enterWriter(writer: Writer, field: string): void {
  if (++writer.depth > writer.maxDepth) {
    throw new Failure("nesting_too_deep", field, `at most ${writer.maxDepth} levels of nesting`, "more, or a value that contains itself");
  }
}

let shared: Writer | undefined;

/**
 * Encodes one message. While the shared writer is busy, an input whose getter encodes something itself gets another one;
 * what a failed encoder left behind is overwritten.
 */
export function encodeWith<Init>(
  write: (writer: Writer, init: Init, field: string) => void,
  init: Init,
  name: string,
  maxDepth: number = defaultMaxDepth,
): Uint8Array<ArrayBuffer> {
  if (maxDepth !== defaultMaxDepth) checkMaxDepth(maxDepth);
  shared ??= new Writer();
  const writer = shared.busy ? new Writer() : shared;
  writer.begin(maxDepth);
  let result: Uint8Array<ArrayBuffer>;
  try {
    write(writer, init, name);
    result = writer.finish();
  } catch (error) {
    writer.end();
    throw toWireError(error);
  }
  writer.end();
  return result;
}
