/** The subprotocol that both sides of a WebSocket must name. */
export const subprotocol = "enginewire.v1";

/** Begins a further subprotocol that carries a credential, in base64url: the one place but the first message where a page can put one. */
export const tokenPrefix = "enginewire.token.";

/** The version of the messages, as `Hello` and `Welcome` name it. */
export const protocolVersion = 1;

/** The codes that a WebSocket is closed with. */
export const closeCodes = {
  /** One side is done. */
  normal: 1000,
  /** The relay is stopping, or a credential expired and its calls have ended. */
  goingAway: 1001,
  /** A text message, where only binary ones are spoken. */
  text: 1003,
  /** A message is longer than the relay takes. */
  tooLong: 1009,
  /** A message that is none of the protocol's, or is not legal where it came. */
  malformed: 4400,
  /** The credential was refused. */
  unauthenticated: 4401,
  /** No version in common. */
  version: 4406,
  /** Nothing was heard for too long. */
  silent: 4408,
  /** The client reads too slowly. */
  slow: 4413,
  /** The client sends too much. */
  flood: 4429,
} as const;
