import type { Event, Pull } from "zeromq";

/** Told when an engine's output connects and when it is gone. */
export interface OutputWatcher {
  connected(): void;
  lost(): void;
}

/**
 * Watches the peers of one output socket. This is how a killed engine is noticed: a PULL says nothing when its peer
 * vanishes, and ZeroMQ heartbeats would stop a TokenSpeed engine. Only peers that completed the ZMTP handshake count, so
 * a stray connection is no engine.
 */
export async function watchOutput(socket: Pull, watcher: OutputWatcher): Promise<void> {
  let peers = 0;
  let refused = 0;
  for await (const event of socket.events as AsyncIterable<Event>) {
    if (event.type === "handshake") {
      peers++;
      watcher.connected();
    } else if (event.type.startsWith("handshake:error")) {
      // a disconnect of the same peer follows
      refused++;
    } else if (event.type === "disconnect") {
      if (refused > 0) {
        refused--;
      } else if (--peers === 0) {
        // what the engine sent before it went is still readable, and a reply is worth more than the news of its end
        while (!socket.closed && socket.readable) await new Promise(setImmediate);
        if (!socket.closed) watcher.lost();
      }
    }
  }
}
