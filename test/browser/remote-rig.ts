// A rig whose engines and relay are in Node (test/contract/rig-server.ts), for a page or a worker.

import { connect, type RelayConnection } from "../../src/web/index.ts";
import { decodeAny, encodeAny } from "../../src/wire/index.ts";
import { type Engines, type Rig, rigOf } from "../behaviours/rig.ts";

interface Waiter {
  readonly resolve: (frames: readonly Uint8Array[]) => void;
  readonly reject: (error: Error) => void;
}

/** A relay in Node, and the engines behind it. */
export class RemoteRelay implements Engines {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, Waiter>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      const [id, error, frames] = decodeAny(new Uint8Array(data as ArrayBuffer)) as [number, string, Uint8Array[]];
      const waiter = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === "") waiter?.resolve(frames);
      else waiter?.reject(new Error(error));
    };
    socket.onclose = () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("the rig is closed"));
    };
  }

  /** Opens one over engines of a kind; `allowed` is whether it lets this origin in. Gives its address as well. */
  static async open(server: string, kind: string, count: number, allowed = true): Promise<{ relay: RemoteRelay; url: string }> {
    const socket = new WebSocket(server);
    const relay = new RemoteRelay(socket);
    await new Promise((resolve) => socket.addEventListener("open", resolve));
    const answer = relay.#answer(0);
    socket.send(encodeAny([kind, count, allowed]));
    const [url] = (await answer) as readonly unknown[];
    return { relay, url: url as string };
  }

  take(engine: number, kind: string): Promise<readonly Uint8Array[]> {
    return this.#order("take", engine, kind);
  }

  async send(engine: number, frame: Uint8Array): Promise<void> {
    await this.#order("send", engine, frame);
  }

  async end(engine: number): Promise<void> {
    await this.#order("end", engine, null);
  }

  /** Has the relay close while its clients still want something; the engines stay. */
  async leave(): Promise<void> {
    await this.#order("leave", 0, null);
  }

  close(): void {
    this.#socket.close();
  }

  #order(what: string, engine: number, detail: string | Uint8Array | null): Promise<readonly Uint8Array[]> {
    const id = ++this.#lastId;
    const answer = this.#answer(id);
    this.#socket.send(encodeAny([id, what, engine, detail]));
    return answer;
  }

  #answer(id: number): Promise<readonly Uint8Array[]> {
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }
}

/** A rig over a relay in Node, by the platform's own WebSocket. */
export async function remoteRig(server: string, kind: string, count: number): Promise<Rig> {
  const { relay, url } = await RemoteRelay.open(server, kind, count);
  const connection: RelayConnection = await connect(url);
  return rigOf(connection, relay, async () => {
    await connection.close();
    relay.close();
  });
}
