import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** A TCP proxy whose line can be cut, stopped and repaired. */
export interface Proxy {
  /** The URL of what it stands before, through it. */
  readonly url: string;
  /** Connections made so far. */
  readonly made: number;
  /** Ends every connection. */
  cut(): void;
  /** Carries nothing any more, without ending anything. */
  stall(): void;
  /** Refuses new connections, or takes them again. */
  refuse(refusing: boolean): void;
}

/** Stands before a WebSocket URL; closed with the test. */
export async function proxyOf(url: string): Promise<Proxy> {
  const target = new URL(url);
  const { hostname, port } = target;
  const sockets = new Set<Socket>();
  let made = 0;
  let stalled = false;
  let refusing = false;
  const server = createServer((near) => {
    if (refusing) {
      near.destroy();
      return;
    }
    made++;
    const far = connect(Number(port), hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("data", (bytes) => {
        if (!stalled) to.write(bytes);
      });
      from.on("error", () => {});
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    cut();
    server.close();
  });
  target.port = String((server.address() as AddressInfo).port);
  return {
    url: target.href,
    get made() {
      return made;
    },
    cut,
    stall() {
      stalled = true;
    },
    refuse(value) {
      refusing = value;
    },
  };
}
