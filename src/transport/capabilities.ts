import { type EngineRelease, engineReleases, type Operation } from "../../generated/tokenspeed/operations.ts";
import { EngineWireError } from "../wire/errors.ts";

const none: readonly string[] = [];

/**
 * The form of control messages. `tagged`: the operations' own structs. `slim`: `[call_id, method, args]`, the dialect of
 * the SMG gateway, announced in the registration.
 */
export type ControlDialect = "tagged" | "slim";

/** What an engine can be asked for. */
export interface EngineCapabilities {
  /** Whether it answers control operations at all; older engines drop them without a word. */
  readonly control: boolean;
  /** How they are written to it. */
  readonly dialect: ControlDialect;
  /** Its release, as its registration says or as the connection was told; absent where neither says one. */
  readonly release?: string;
}

/** The release in a registration's version, such as `tokenspeed-0.1.0`. */
export function releaseOf(version: string): string | undefined {
  return /^tokenspeed-(\d+\.\d+\.\d+)/.exec(version)?.[1];
}

/** Refuses a release that is not recorded: what it knows is not known here. Throws `invalid_argument`. */
export function checkRelease(release: EngineRelease): EngineRelease {
  if (engineReleases.includes(release)) return release;
  const known = `one of ${engineReleases.join(", ")}`;
  throw new EngineWireError(
    "invalid_argument",
    `release must be ${known}, got ${String(release)}; leave it out to learn it from the engine`,
    {
      path: "release",
      expected: known,
      found: typeof release,
    },
  );
}

/** Which properties of an operation's request a release had not. Of a release that is not recorded, nothing is known. */
export function lackedBy(release: string | undefined, operation: Operation): readonly string[] {
  return (release !== undefined && operation.lacks?.[release]) || none;
}

/** Why an engine cannot be asked for an operation, or `undefined`. An engine of unknown release is assumed to know it. */
export function unsupportedBecause(capabilities: EngineCapabilities, operation: Operation): string | undefined {
  const { control, dialect, release } = capabilities;
  if (!control) return "it does not answer control operations over this wire";
  if (dialect === "slim" && operation.slim === undefined) return "the control dialect it speaks has no such operation";
  if (release !== undefined && older(release, operation.since))
    return `it is release ${release}, and the operation came with ${operation.since}`;
  if (release !== undefined && operation.misreadBy?.includes(release))
    return `it is release ${release}, whose request has other fields in their places`;
  return undefined;
}

function older(release: string, than: string): boolean {
  if (release === than) return false;
  const parts = than.split(".").map(Number);
  for (const [index, part] of release.split(".").map(Number).entries()) {
    const other = parts[index] ?? 0;
    if (part !== other) return part < other;
  }
  return false;
}
