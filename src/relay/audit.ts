import { closeSync, openSync, writeSync } from "node:fs";
import type { EngineReply } from "../transport/connection.ts";
import { EngineWireError } from "../wire/errors.ts";
import type { Caller } from "./call.ts";

/** One line of the audit log. */
export interface AuditEntry {
  /** When it ended, in ISO 8601. */
  readonly time: string;
  /** `call`: a state-changing call that was made. `denied`: a call that its credential does not allow. `refused`: a client that was not let in. */
  readonly type: "call" | "denied" | "refused";
  /** The session's name; empty where there was none yet. */
  readonly session: string;
  /** Whom the credential names; empty where it was refused. */
  readonly who: string;
  /** What the client calls itself. */
  readonly client: string;
  /** The address it connects from. */
  readonly address: string;
  /** The page it comes from. */
  readonly origin?: string;
  /** The operation's method. */
  readonly operation?: string;
  /** The request, long values elided. */
  readonly request?: unknown;
  /** The engines it was for; absent for all. */
  readonly engines?: readonly number[];
  /** Whether the guard was passed by. */
  readonly unguarded?: true;
  /** `ok`, `operation_failed` where an engine answered so, or the code of the error. */
  readonly outcome: string;
  /** The error's message. */
  readonly message?: string;
  /** What each engine answered. */
  readonly replies?: readonly { readonly engine: number; readonly reply: unknown; readonly durationMs: number }[];
  /** From the call's arrival until its end, in milliseconds. */
  readonly durationMs?: number;
  /** How many clients were refused since the last such line that have none of their own: ten in a second do. */
  readonly untold?: number;
}

/** What every entry begins with: what it is, when, and whose. */
export function entryOf(
  type: AuditEntry["type"],
  {
    session,
    identity,
    client,
    address,
    origin,
  }: Pick<Caller, "session" | "client" | "address" | "origin"> & { identity: { name: string } },
): Omit<AuditEntry, "outcome"> {
  const who = identity.name;
  return { time: new Date().toISOString(), type, session, who, client, address, ...(origin !== undefined && { origin }) };
}

/** Takes the entries. A throw refuses the state-changing calls that follow, until a write succeeds. */
export interface AuditSink {
  /** Writes an entry down before it returns. */
  write(entry: AuditEntry): void;
}

/** An audit log in a file. */
export interface AuditFile extends AuditSink {
  /** Opens the file anew, after something has moved it away. Throws what opening throws. */
  reopen(): void;
  /** Closes the file. */
  close(): void;
}

/**
 * Appends entries to a file, one JSON line each, created for its owner alone. Each is written before the next message is
 * looked at: state-changing calls are rare, and a log that lags is worth little after a crash. Throws `address_unavailable`
 * where the file cannot be opened.
 */
export function auditFile(path: string): AuditFile {
  const open = (): number => {
    try {
      return openSync(path, "a", 0o600);
    } catch (cause) {
      throw new EngineWireError("address_unavailable", `the audit log ${path} cannot be opened: ${(cause as Error).message}`, { cause });
    }
  };
  let file: number | undefined = open();
  return {
    write(entry) {
      file ??= open();
      const line = Buffer.from(`${JSON.stringify(entry).replace(unprintable, escapeOf)}\n`);
      for (let at = 0; at < line.length; ) at += writeSync(file, line, at);
    },
    reopen() {
      const before = file;
      file = open();
      if (before !== undefined) closeSync(before);
    },
    close() {
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
}

/** Replies as an entry has them. */
export function auditReplies(replies: readonly EngineReply[]): NonNullable<AuditEntry["replies"]> {
  return replies.map(({ engine, reply, durationMs }) => ({
    engine,
    reply: elide(reply),
    durationMs: Math.round(durationMs * 1000) / 1000,
  }));
}

/** What JSON leaves as it is, and a terminal or a program that reads lines does not: controls, line ends, changes of direction. */
const unprintable = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

const longestText = 120;
const longestList = 8;
const deepest = 5;
const mostValues = 300;

/** A value as the log shows it: long texts, lists and bytes are cut, and told how long they were; so is what has too many values in all. */
export function elide(value: unknown): unknown {
  return elideWithin(value, 0, { left: mostValues });
}

function elideWithin(value: unknown, depth: number, values: { left: number }): unknown {
  if (--values.left < 0) return "…";
  if (typeof value === "string")
    return value.length <= longestText ? value : `${value.slice(0, longestText / 2)}… (${value.length} characters)`;
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array) return `(${value.length} bytes)`;
  if (depth === deepest) return "…";
  if (Array.isArray(value)) {
    const shown = value.slice(0, longestList).map((item) => elideWithin(item, depth + 1, values));
    return value.length <= longestList ? shown : [...shown, `… (${value.length} items)`];
  }
  const entries = value instanceof Map ? [...value].map(([key, item]) => [String(key), item] as const) : Object.entries(value);
  const shown = entries
    .slice(0, longestList * 4)
    .map(([key, item]) => [elide(key) as string, elideWithin(item, depth + 1, values)] as const);
  if (shown.length < entries.length) shown.push(["…", `(${entries.length} entries)`]);
  return Object.fromEntries(shown);
}
