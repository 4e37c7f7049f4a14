/** A masked frame of a client, whose mask changes nothing. */
export function frame(opcode: number, payload: Uint8Array, final = true): Buffer {
  const { length } = payload;
  const head =
    length < 126
      ? [length | 0x80]
      : length < 65_536
        ? [126 | 0x80, length >> 8, length & 255]
        : [127 | 0x80, 0, 0, 0, 0, length >>> 24, (length >> 16) & 255, (length >> 8) & 255, length & 255];
  return Buffer.concat([Buffer.of((final ? 0x80 : 0) | opcode, ...head, 0, 0, 0, 0), payload]);
}
