import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import * as messages from "../../src/messages.ts";
import { decodeStruct, structOf } from "../vectors/message.ts";
import { fromHex, type Noted } from "../vectors/notation.ts";
import { codeOf } from "./error-code.ts";
import { LineService } from "./line-service.ts";

const root = join(import.meta.dirname, "../..");
/** The folder of files shared by all who work on this, beside the checkout. */
const shared = resolve(root, process.env.ENGINEWIRE_SHARED ?? "../shared");
const python = process.env.ENGINEWIRE_PYTHON;
const classes = join(shared, "peers/msgspec");

/** Why nothing can be compared with Python here, if so. */
export const missing =
  python === undefined
    ? "ENGINEWIRE_PYTHON names no Python with msgspec"
    : existsSync(join(classes, "structs_0_1_0.py"))
      ? undefined
      : `the Python classes are not in ${classes}`;
if (missing !== undefined) console.warn(`skipped: the comparison with msgspec, for ${missing}`);

/** What a Python decoder makes of a message. */
export type Outcome =
  | { readonly ok: false; readonly error: string }
  | { readonly ok: true; readonly value: Noted; readonly hex: string; readonly type: string };

/** A message, and what Python makes of it. */
export type Tried = Outcome & { readonly name: string; readonly message: string };

/** Asks of the Python side; each is a function of its own there. */
export interface Asks {
  structs: {
    asked: object;
    answer: {
      readonly [name: string]: { readonly kind: Kind; readonly fields: readonly { readonly name: string; readonly required: boolean }[] };
    };
  };
  decode: { asked: { readonly decoder: string; readonly messages: readonly string[] }; answer: readonly Outcome[] };
  make: {
    asked: { readonly type: string; readonly seed: number; readonly count: number };
    answer: readonly { readonly hex: string; readonly value: Noted; readonly unsafe: boolean }[];
  };
  construct: { asked: { readonly type: string; readonly fields: Noted }; answer: { readonly hex: string; readonly value: Noted } };
  omitting: { asked: { readonly type: string; readonly fields: Noted }; answer: { readonly hex: string } };
  matrix: {
    asked: { readonly values: readonly Noted[] };
    answer: readonly (Tried & { readonly field: string; readonly given: Noted; readonly base: Noted })[];
  };
  "decode frames": {
    asked: { readonly type: string; readonly messages: readonly (readonly string[])[] };
    answer: readonly (
      | { readonly ok: false; readonly error: string }
      | { readonly ok: true; readonly value: Noted; readonly frames: readonly string[] }
    )[];
  };
  "make frames": {
    asked: { readonly type: string; readonly seed: number; readonly count: number };
    answer: readonly { readonly frames: readonly string[]; readonly value: Noted; readonly unsafe: boolean }[];
  };
  tails: { asked: { readonly seed: number; readonly count: number }; answer: readonly Tried[] };
}

type Kind = "request" | "reply" | "handshake";

/** Real msgspec in a process of its own. */
export class Msgspec {
  readonly #service = new LineService(python ?? "", [join(import.meta.dirname, "msgspec_service.py"), classes]);

  async ask<Do extends keyof Asks>(what: Do, asked: Asks[Do]["asked"]): Promise<Asks[Do]["answer"]> {
    const { answer, failure } = JSON.parse(await this.#service.ask(JSON.stringify({ do: what, ...asked })));
    if (failure !== undefined) throw new Error(failure);
    return answer;
  }

  stop(): Promise<void> {
    return this.#service.stop();
  }
}

/**
 * What our decoder does differently from Python with a message, or `undefined`. Stated exception: an integer field beyond
 * the safe range is `unsafe_integer` here.
 */
export function difference(type: string, message: string, outcome: Outcome): string | undefined {
  let decoded: unknown;
  const code = codeOf(() => {
    decoded = decodeStruct(messages, type, fromHex(message));
  });
  if (code === "unsafe_integer") return undefined;
  if (!outcome.ok) return code === undefined ? `${type} ${message}: accepted, and Python says ${outcome.error}` : undefined;
  if (code !== undefined) return `${type} ${message}: ${code}, and Python accepts it`;
  return isDeepStrictEqual(decoded, structOf(type, outcome.value, false)) ? undefined : `${type} ${message}: another value`;
}
