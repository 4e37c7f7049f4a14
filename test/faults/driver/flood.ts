import { type Setting, same } from "./setting.ts";

const messages = 1_000_000;

/** A million messages that nobody asked for: memory stays bounded and calls are answered meanwhile, on that engine too. */
export async function flood(setting: Setting): Promise<void> {
  // a process each: only one of them floods
  const [listener, flooding, quiet] = [await setting.bind({ count: 2 }), setting.host(), setting.host()];
  void flooding.start(listener.handshakeAddress, 0);
  void quiet.start(listener.handshakeAddress, 1);
  const client = await setting.accept(listener);
  const { connection } = client;
  // a reader that never reads must not collect a million events
  const unread = connection.events();
  const before = memory();
  let most = 0;
  const watch = setInterval(() => {
    most = Math.max(most, memory());
  }, 20);
  setting.inject(messages);
  const first = setting.ask(client, 0, { id: setting.id(), answer: "under a flood", amount: messages });
  let meanwhile = 0;
  const seen = () => connection.counts.malformedMessages + connection.counts.unknownTags + connection.counts.unexpectedReplies;
  while (seen() < messages) {
    same("a call of the other engine", await setting.ask(client, 1, { id: setting.id(), answer: "plainly" }, { timeoutMs: 60_000 }), "ok");
    if (seen() > 0 && seen() < messages) meanwhile++;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  clearInterval(watch);
  same("the call that the flood was sent under", await first, "ok");
  same("the flooding engine afterwards", await setting.ask(client, 0, { id: setting.id(), answer: "plainly" }), "ok");
  same("messages seen", seen(), messages);
  if (meanwhile < 10) throw new Error(`only ${meanwhile} calls were answered during the flood`);
  const grown = Math.round((most - before) / 1e6);
  if (grown > 600) throw new Error(`memory grew by ${grown} MB`);
  const dropped = (await unread.next()).value;
  same("what the unread events say", dropped?.type, "events_dropped");
}

/** All memory of the process, ZeroMQ's queues included. */
function memory(): number {
  return process.memoryUsage.rss();
}
