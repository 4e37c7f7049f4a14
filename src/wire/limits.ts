/**
 * How deep arrays, maps and structs may nest in one message, in both directions, unless an encoder or decoder is given
 * another limit. It guards against cycles on the way out and against hostile input on the way in.
 */
export const defaultMaxDepth = 64;

/** The highest limit that can be asked for: every level takes stack, and the stack's size is not ours to choose. */
export const highestMaxDepth = 1000;
