import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { expect, onTestFinished } from "vitest";

/** Resolves when a socket has closed, with an error or without. */
export function closing(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

/** What a server says to bytes that claim to be HTTP, until it ends the connection. */
export async function answerTo(url: string, lines: readonly string[], after = ""): Promise<string> {
  const { port } = new URL(url);
  const socket = connectTcp(Number(port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  let answer = "";
  socket.on("data", (bytes) => {
    answer += bytes;
  });
  socket.write(`${lines.join("\r\n")}\r\n\r\n${after}`);
  await closing(socket);
  return answer;
}

/** A WebSocket by hand: its frames can be wrong. */
export async function rawSocket(url: string): Promise<Socket> {
  const { port, host } = new URL(url);
  const socket = connectTcp(Number(port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  await once(socket, "connect");
  const key = Buffer.from("0123456789abcdef").toString("base64");
  const lines = [`GET / HTTP/1.1`, `Host: ${host}`, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];
  socket.write(`${[...lines, `Sec-WebSocket-Key: ${key}`, "Sec-WebSocket-Protocol: enginewire.v1"].join("\r\n")}\r\n\r\n`);
  const [head] = await once(socket, "data");
  expect(String(head)).toContain("101 Switching Protocols");
  return socket;
}
