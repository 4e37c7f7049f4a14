// An engine made of bare zeromq.js sockets that does exactly what a test tells it, right or wrong.
import { Dealer, Push } from "zeromq";
import {
  type ControlOutputInit,
  type ControlRequest,
  decodeControlRequest,
  decodeHandshakeInitMessage,
  encodeControlOutput,
  encodeEngineCoreReadyResponse,
  encodeReadyMessage,
  type HandshakeInitMessage,
} from "../../src/messages.ts";

export class ScriptedEngine {
  readonly index: number;
  readonly #handshake: Dealer;
  readonly #routingId: string;
  #input: Dealer | undefined;
  #output: Push | undefined;
  init: HandshakeInitMessage | undefined;

  constructor(handshakeAddress: string, index = 0) {
    this.index = index;
    // zeromq.js takes a routing id as text and sends its bytes; an index below 128 is the same in both
    this.#routingId = String.fromCharCode(index, 0);
    this.#handshake = new Dealer({ routingId: this.#routingId, linger: 0 });
    this.#handshake.connect(handshakeAddress);
  }

  /** The whole handshake, as a real engine does it. */
  async register(vllmVersion = "tokenspeed-0.1.0"): Promise<this> {
    await this.hello();
    await this.ready();
    await this.sendRegistration(encodeEngineCoreReadyResponse({ maxModelLen: 4096, vllmVersion }));
    await this.connectOutput();
    await this.answerProbe();
    return this;
  }

  /** Answers the question with which a frontend finds out whether an engine answers. */
  async answerProbe(): Promise<void> {
    const { $tag } = await this.receive();
    if ($tag !== "IsSchedulerPausedReqInput") throw new Error(`expected the probe, got ${$tag}`);
    await this.reply({ $tag: "IsSchedulerPausedReqOutput", isPaused: false });
  }

  async hello(): Promise<void> {
    await this.#handshake.send(encodeReadyMessage({ status: "HELLO", local: true, headless: true }));
  }

  async ready(): Promise<void> {
    const frames = await this.#handshake.receive();
    this.init = decodeHandshakeInitMessage(frames.at(-1) ?? new Uint8Array());
    await this.#handshake.send(encodeReadyMessage({ status: "READY", local: true, headless: true }));
  }

  async sendOnHandshake(...frames: Uint8Array[]): Promise<void> {
    await this.#handshake.send(frames);
  }

  async sendRegistration(...frames: Uint8Array[]): Promise<void> {
    this.#input = new Dealer({ routingId: this.#routingId, linger: 0 });
    this.#input.connect(this.init?.addresses.inputs[0] ?? "");
    await this.#input.send(frames);
  }

  async sendOnInput(...frames: Uint8Array[]): Promise<void> {
    await this.#input?.send(frames);
  }

  async connectOutput(): Promise<void> {
    this.#output = new Push({ linger: 0 });
    this.#output.connect(this.init?.addresses.outputs[0] ?? "");
  }

  /** The next control request. */
  async receive(): Promise<ControlRequest> {
    return decodeControlRequest(await this.receivePayload());
  }

  /** The next control request as it came. */
  async receivePayload(): Promise<Uint8Array> {
    const [type, payload] = await this.receiveFrames();
    if (type?.[0] !== 2 || payload === undefined) throw new Error("not a control request");
    return payload;
  }

  /** The next message of any kind: its type and what follows. */
  async receiveFrames(): Promise<Uint8Array[]> {
    return (await this.#input?.receive()) ?? [];
  }

  /** Whether a request arrives within some time; for the absence of one. */
  async receivesWithin(milliseconds: number): Promise<boolean> {
    const input = this.#input;
    if (input === undefined) return false;
    input.receiveTimeout = milliseconds;
    try {
      await input.receive();
      return true;
    } catch {
      return false;
    } finally {
      input.receiveTimeout = -1;
    }
  }

  async reply(init: ControlOutputInit): Promise<void> {
    await this.send(encodeControlOutput(init));
  }

  async send(...frames: Uint8Array[]): Promise<void> {
    await this.#output?.send(frames);
  }

  async sayDead(): Promise<void> {
    await this.send(Buffer.from("ENGINE_CORE_DEAD"));
  }

  /** Closes its sockets; what it sent is still delivered within `lingerMs`. */
  close(lingerMs = 0): void {
    if (this.#output !== undefined && !this.#output.closed) this.#output.linger = lingerMs;
    this.#handshake.close();
    this.#input?.close();
    this.#output?.close();
  }
}
