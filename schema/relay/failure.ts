import { field, list, nullable, str, struct, u16, u32 } from "../dsl.ts";

const absent = { default: null } as const;

export const Failure = struct("Failure", {
  doc: "An error, as `docs/errors.md` lists them. A peer must expect codes that it does not know.",
  layout: "array",
  fields: [
    field("code", str, { doc: "The stable code." }),
    field("message", str, { doc: "What went wrong and what to do, beginning with the code." }),
    field("operation", nullable(str), { ...absent, doc: "The operation's method." }),
    field("engine", nullable(u16), { ...absent, doc: "The engine's index." }),
    field("stage", nullable(str), { ...absent, doc: "Where a call stood: `queue`, `send` or `reply`." }),
    field("path", nullable(str), { ...absent, doc: "The struct and field at fault." }),
    field("offset", nullable(u32), { ...absent, doc: "Byte offset in the message at fault." }),
    field("expected", nullable(str), { ...absent, doc: "What was expected." }),
    field("found", nullable(str), { ...absent, doc: "What was found." }),
    field("missing", nullable(list(u16)), { ...absent, doc: "Engines that had not answered." }),
  ],
});
