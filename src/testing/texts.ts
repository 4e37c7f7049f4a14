const named: Readonly<Record<string, string>> = { '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0" };

/** A string as the engine quotes it in messages, which is Rust's debug form. */
export function quoted(text: string): string {
  let inside = "";
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    inside += named[character] ?? (code < 0x20 || code === 0x7f ? `\\u{${code.toString(16)}}` : character);
  }
  return `"${inside}"`;
}

/** Strings as the engine lists them in messages. */
export function quotedList(texts: readonly string[]): string {
  return `[${texts.map(quoted).join(", ")}]`;
}
