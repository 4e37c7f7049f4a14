import type { Place } from "./contract.ts";
import type { SyntaxNode } from "./python-syntax.ts";

/** Something in a Python file that is not Python, or that cannot be said on this wire. */
export class PythonError extends Error {
  override readonly name = "PythonError";
  readonly place: Place;

  constructor(place: Place, text: string, offending: string) {
    const shown = offending.length > 120 ? `${offending.slice(0, 120)}…` : offending;
    super(`${place.file}:${place.line}:${place.column}: ${text}${shown === "" ? "" : `: ${shown}`}`);
    this.place = place;
  }
}

/** The text of a Python file with the places of its characters. */
export class Source {
  readonly file: string;
  readonly text: string;
  readonly lines: readonly string[];
  readonly #starts: number[] = [0];

  constructor(file: string, text: string) {
    this.file = file;
    // Python reads all three line ends, and a mark at the start, alike.
    this.text = text.replace(/^\ufeff/, "").replaceAll(/\r\n?/g, "\n");
    this.lines = this.text.split("\n");
    for (const line of this.lines) this.#starts.push((this.#starts.at(-1) ?? 0) + line.length + 1);
  }

  /** Where an offset is. */
  placeOf(offset: number): Place {
    let low = 0;
    let high = this.lines.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { file: this.file, line: low + 1, column: offset - (this.#starts[low] ?? 0) + 1 };
  }

  /** The text of a node. */
  of(node: SyntaxNode): string {
    return this.text.slice(node.from, node.to);
  }

  /** What stands before a node on its line. */
  before(node: SyntaxNode): string {
    const { line, column } = this.placeOf(node.from);
    return (this.lines[line - 1] ?? "").slice(0, column - 1);
  }

  /** An error about a node, with its first line. */
  error(node: SyntaxNode, text: string): PythonError {
    return this.errorAt(node.from, text, (this.of(node).split("\n")[0] ?? "").trim());
  }

  /** An error about an offset; shows the line unless given what offends. */
  errorAt(offset: number, text: string, offending?: string): PythonError {
    const place = this.placeOf(offset);
    return new PythonError(place, text, offending ?? (this.lines[place.line - 1] ?? "").trim());
  }
}

/** Reads the bytes of a Python file. */
export function openSource(file: string, bytes: Uint8Array): Source {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    const sound = new Source(file, soundPart(bytes));
    throw sound.errorAt(sound.text.length, "not UTF-8 from here on", "");
  }
  const source = new Source(file, text);
  const zero = source.text.indexOf("\0");
  if (zero >= 0) throw source.errorAt(zero, "Python source must not hold a NUL character");
  return source;
}

/** The text before the first bytes that are not UTF-8. */
function soundPart(bytes: Uint8Array): string {
  let low = 0;
  let high = bytes.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (isSound(bytes.subarray(0, middle))) low = middle;
    else high = middle - 1;
  }
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(0, low)).replace(/\ufffd$/, "");
}

function isSound(bytes: Uint8Array): boolean {
  try {
    // As a stream, so that a cut in the midst of a character is no fault.
    new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}
