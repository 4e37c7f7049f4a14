import { replyTags } from "../../generated/tokenspeed/replies.ts";

/** The operation a struct belongs to: its tag without `ReqInput`, `ReqOutput` or `Req`. */
export function operationOf(tag: string): string {
  return tag.replace(/Req(Input|Output)?$/, "");
}

/** The names of all operations on the wire, as rules and event lines spell them. */
export const operationNames: readonly string[] = /* @__PURE__ */ Object.keys(replyTags).map(operationOf);
