/** A struct's header and tag, prepared to be written and compared four bytes at a time. */
export interface Head {
  /** The bytes, filled up with zeros. */
  readonly words: Int32Array;
  /** Number of bytes. */
  readonly length: number;
  /** The last four bytes, where there are as many. */
  readonly last: number;
}

/** Prepares a header and a tag from their bytes, one for each character. */
export function prepareHead(raw: string): Head {
  const { length } = raw;
  const padded = new DataView(new ArrayBuffer((length + 3) & ~3));
  for (let i = 0; i < length; i++) padded.setUint8(i, raw.charCodeAt(i));
  const words = new Int32Array(padded.byteLength / 4);
  for (let i = 0; i < words.length; i++) words[i] = padded.getInt32(4 * i);
  return { words, length, last: length < 4 ? 0 : padded.getInt32(length - 4) };
}
