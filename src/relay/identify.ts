import { entryOf } from "./audit.ts";
import type { RelayContext } from "./context.ts";
import { anyone, checkIdentity, type Identity } from "./identity.ts";
import type { Arrival } from "./session.ts";

/** Whom a credential names; `undefined` where it lets nobody in, which is counted and written down. Never rejects. */
export async function identify(
  { authenticate, log, audit, counter, refusals }: RelayContext,
  { name, address, origin }: Arrival,
  token: string | undefined,
  client: string,
): Promise<Identity | undefined> {
  if (authenticate === undefined) return anyone;
  let identity: Identity | undefined;
  let thrown: unknown;
  try {
    const found = await authenticate({ address, ...(token !== undefined && { token }), ...(origin !== undefined && { origin }) });
    if (found !== undefined) identity = checkIdentity(found);
  } catch (error) {
    thrown = error;
  }
  const valid =
    identity !== undefined && !(identity.expiresAt !== undefined && identity.expiresAt <= Date.now()) && !identity.withdrawn?.aborted;
  if (valid) return identity;
  counter.client("refused");
  const untold = refusals.next();
  if (untold === undefined) return undefined;
  if (thrown !== undefined) log({ level: "warn", message: `the credential of session ${name} could not be checked`, error: thrown });
  audit?.({
    ...entryOf("refused", { session: name, identity: { name: "" }, client, address, origin }),
    outcome: "unauthenticated",
    ...(untold > 0 && { untold }),
  });
  return undefined;
}
