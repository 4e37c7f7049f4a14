import type { Failure, FailureInit } from "../../../generated/relay/types.ts";
import { EngineWireError, type EngineWireErrorDetails, type ErrorCode, isEngineWireError } from "../../wire/errors.ts";

// what an error quotes may come from a hostile peer
const longest = 2000;

/** An error as it travels. Of anything but an `EngineWireError` only that it happened is told: its text may hold secrets. */
export function toFailure(error: unknown): FailureInit {
  if (!isEngineWireError(error)) return { code: "closed", message: "closed: the relay failed to carry the call out; its log says why" };
  const { code, operation, engine, stage, offset, missing } = error;
  const { message, path, expected, found } = error;
  return {
    code,
    message: cut(message) ?? "",
    operation: cut(operation),
    engine,
    stage: cut(stage),
    path: cut(path),
    offset,
    expected: cut(expected),
    found: cut(found),
    missing,
  };
}

function cut(text: string | undefined): string | undefined {
  if (text === undefined || text.length <= longest) return text;
  // never through the middle of a pair, which would be no text any more
  return `${text.slice(0, longest).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** The error that travelled, with the replies that came before it. */
export function fromFailure({ code, message, ...rest }: Failure, further: EngineWireErrorDetails = {}): EngineWireError {
  const details: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(rest)) if (value !== null) details[name] = value;
  const text = message.startsWith(`${code}: `) ? message.slice(code.length + 2) : message;
  // a newer relay may have codes that this release does not list
  return new EngineWireError(code as ErrorCode, text, { ...details, ...further });
}
