/** A tensor as it travels: what torch needs to make one of its bytes. */
export interface Tensor {
  /** The dtype as torch names it, without `torch.`: `float32`, `bfloat16`, `uint8`. */
  readonly dtype: string;
  /** Length of each dimension, none negative; empty for a scalar. */
  readonly shape: readonly number[];
  /** The elements in C order, little-endian. */
  readonly data: Uint8Array;
}

/** The frames of one message: the payload, and what of its tensors is not inline. */
export type Frames = readonly [payload: Uint8Array<ArrayBuffer>, ...aux: Uint8Array<ArrayBuffer>[]];

/** The extension type of a tensor's bytes. Types 1 and 2 are pickles, which nobody sends and nobody here reads. */
export const rawBytes = 3;

/** From this length on the bytes are a frame of their own. */
export const framedLength = 256;
