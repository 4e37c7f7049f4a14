/** A socket that takes one receive at a time. */
export interface Receiver {
  readonly closed: boolean;
  receive(): Promise<Uint8Array[]>;
}

/**
 * The only reader of a socket: hands every message to `deliver`, which must not throw, until the socket is closed. A
 * receive that fails while the socket is open goes to `failed` and ends the loop.
 */
export async function receiveAll(
  socket: Receiver,
  deliver: (frames: Uint8Array[]) => void,
  failed: (error: unknown) => void,
): Promise<void> {
  for (;;) {
    let frames: Uint8Array[];
    try {
      frames = await socket.receive();
    } catch (error) {
      // closing rejects a pending receive with EAGAIN, the code of a timeout: only the socket itself can tell
      if (!socket.closed) failed(error);
      return;
    }
    deliver(frames);
    // asking for the next message costs a system call: first let everybody run who waited for this one
    await afterMicrotasks();
  }
}

function afterMicrotasks(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
