// A Web Worker that asks engines through a relay and tells what they said.
import { createClient } from "../../src/index.ts";
import { connect } from "../../src/web/index.ts";

const worker = globalThis as unknown as {
  onmessage: (event: { readonly data: { readonly url: string; readonly token: string } }) => void;
  postMessage(message: unknown): void;
};

worker.onmessage = async ({ data: { url, token } }) => {
  try {
    const connection = await connect(url, { token, client: "a worker" });
    const replies = await createClient(connection).isSleeping();
    await connection.close();
    worker.postMessage(replies.map(({ engine, reply }) => [engine, reply.isSleeping]));
  } catch (error) {
    worker.postMessage(String(error));
  }
};
