import type { Operation } from "../../generated/tokenspeed/operations.ts";
import type { EngineReply } from "../transport/connection.ts";
import { EngineWireError } from "../wire/errors.ts";

/** Passes the replies on when no engine said `success: false`. Throws `operation_failed` with every reply otherwise. */
export function requireSuccess(operation: Operation, replies: readonly EngineReply[]): readonly EngineReply[] {
  const failed = replies.filter(({ reply }) => "success" in reply && reply.success === false);
  const first = failed[0];
  if (first === undefined) return replies;
  const reasons = failed.map(({ engine, reply }) => `engine ${engine}: ${reasonOf(reply)}`).join("; ");
  throw new EngineWireError("operation_failed", `${operation.name} failed on ${failed.length} of ${replies.length} engines (${reasons})`, {
    operation: operation.name,
    engine: first.engine,
    replies,
  });
}

function reasonOf(reply: object): string {
  const message = "message" in reply ? reply.message : "";
  return typeof message === "string" && message !== "" ? message : "no reason given";
}
