import { childrenOf, type SyntaxNode } from "./python-syntax.ts";
import type { Source } from "./source.ts";

const escapes: { readonly [letter: string]: string } = {
  "\n": "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

/** The value of a string literal, or of several side by side: text, or bytes where it begins with `b`. */
export function readString(source: Source, node: SyntaxNode): string | Uint8Array {
  if (node.name !== "ContinuedString") return readOne(source, node);
  const parts = childrenOf(node).map((part) => readOne(source, part));
  const texts = parts.filter((part) => typeof part === "string");
  if (texts.length === parts.length) return texts.join("");
  throw source.error(node, "bytes literals side by side");
}

function readOne(source: Source, node: SyntaxNode): string | Uint8Array {
  const match = /^([A-Za-z]*)("""|'''|"|')([\s\S]*)\2$/.exec(source.of(node));
  if (match === null || node.name !== "String") throw source.error(node, "a string of a form that is not known");
  const [, prefix = "", , body = ""] = match;
  const kind = prefix.toLowerCase();
  const text = kind.includes("r") ? body : resolveEscapes(source, node, body, kind.includes("b"));
  if (!kind.includes("b")) return text;
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

function resolveEscapes(source: Source, node: SyntaxNode, body: string, bytes: boolean): string {
  return body.replaceAll(/\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|[\s\S])/g, (whole, code: string) => {
    const simple = escapes[code];
    if (simple !== undefined) return simple;
    if (/^[0-7]+$/.test(code)) return String.fromCodePoint(Number.parseInt(code, 8));
    const point = Number.parseInt(code.slice(1), 16);
    if (code.length > 1 && (code[0] === "x" || !bytes) && point <= 0x10ffff) return String.fromCodePoint(point);
    if (code === "N" && !bytes) throw source.error(node, "a character given by its name");
    // Python keeps the backslash of an escape that it does not know.
    return whole;
  });
}
