import { base, field, nullable, str, strOrList } from "../dsl.ts";

/** What every control struct begins with. The engine never echoes either field. */
export const BaseReq = base("BaseReq", {
  doc: "The two fields that every control struct begins with.",
  fields: [
    field("rid", nullable(strOrList), {
      default: null,
      doc: "Request id, or the ids of a batch; no meaning for control operations, never echoed.",
    }),
    field("http_worker_ipc", nullable(str), {
      default: null,
      doc: "Address of the HTTP worker a reply is routed to inside the Python frontend; nil on this wire.",
    }),
  ],
});
