// The soak's engines, a process of their own: two groups of four simulated ranks. What a released engine answers does not
// always say which call it answers, so some replies are replaced, in their place in the round, by ones that do.
// argv: the handshake address, the seed.
import { type ControlOutputInit, type ControlRequest, encodeControlOutput } from "../../src/messages.ts";
import { type EngineEvent, type SimulatedEngine, startEngine } from "../../src/testing/index.ts";
import { randomOf } from "../faults/random.ts";

const [, , handshake = "", seed = "0"] = process.argv;
const random = randomOf(Number(seed) + 1);
/** How often the reply to a setInternalState is lost for good. */
const lost = 0.0003;

/** Starts the ranks `index` to `index + 3`. */
function group(index: number): Promise<SimulatedEngine> {
  // what each rank was asked and has not answered, by the operation's name: one of a kind, as lanes let out no more
  const asked = [0, 1, 2, 3].map(() => new Map<string, ControlRequest>());
  const onEvent = (event: EngineEvent): void => {
    if (event.event === "received" && event.message.kind === "control") {
      const { request } = event.message;
      asked[event.rank]?.set(request.$tag, request);
    } else if (event.event === "reply_dropped") {
      const { $tag = "" } = event.reply;
      const reply = named(
        event.reply,
        asked[event.rank]?.get($tag.replace("Output", $tag.startsWith("Set") ? "" : "Input")),
        index + event.rank,
      );
      const send = () => void starting.then((engine) => engine.sendRaw(event.rank, encodeControlOutput(reply)));
      // a drain may be answered at any time; what is answered at once comes in its place or never
      if ($tag === "PauseSchedulerReqOutput" && random() < 0.1) setTimeout(send, random() * 30);
      else if ($tag !== "SetInternalStateReqOutput" || random() >= lost) send();
    }
  };
  const starting = startEngine({
    handshake,
    index,
    ranks: 4,
    memorySaver: true,
    onEvent,
    stopsWithFrontend: true,
    dropReply: [{ op: "SetInternalState" }, { op: "PauseScheduler" }],
    failOp: [0, 1, 2, 3].map((rank) => ({ op: "Profile", rank, message: `engine ${index + rank}` })),
  });
  return starting;
}

/** The reply with the names of its engine and its call in it. */
function named(reply: ControlOutputInit, request: ControlRequest | undefined, engine: number): ControlOutputInit {
  if (request?.$tag === "SetInternalStateReq" && reply.$tag === "SetInternalStateReqOutput") {
    return { ...reply, serverArgs: { ...request.serverArgs, engine } };
  }
  if (request?.$tag === "PauseSchedulerReqInput" && reply.$tag === "PauseSchedulerReqOutput") {
    return { ...reply, message: `engine ${engine}, mode ${request.mode}` };
  }
  throw new Error(`no request for ${reply.$tag}`);
}

const groups = await Promise.all([group(0), group(4)]);

// now and then all engines stand still: calls pile up, expire and are aborted meanwhile
const timer = setInterval(() => {
  if (random() < 0.3) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, random() * 40);
}, 50);
await Promise.all(groups.map(({ closed }) => closed));
clearInterval(timer);
