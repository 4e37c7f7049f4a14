import { isIP } from "node:net";
import { isLoopback } from "./addresses.ts";

/** Which pages and which names of the relay are let through. */
export interface OriginRules {
  /** Origins of pages that may connect besides those the relay serves itself, such as `https://console.example`. */
  readonly origins: readonly string[];
  /** Host names under which the relay is reached. */
  readonly hosts: readonly string[];
  /** Whether a client that names no Origin, so that it is no page, is kept out. */
  readonly requireOrigin: boolean;
}

/**
 * Why a request is refused, or `undefined`. The Host must be an IP address, this machine or a name that was given: a page
 * that lets its own name point here (DNS rebinding) sends its own name. The Origin must be the host itself or a given one.
 */
export function refuseOrigin(host: string | undefined, origin: string | undefined, rules: OriginRules): string | undefined {
  const authority = host === undefined ? undefined : authorityOf(host);
  if (authority === undefined) return "the Host header is missing or malformed";
  const { name, whole } = authority;
  const bare = name.replace(/^\[|\]$/g, "");
  if (isIP(bare) === 0 && !isLoopback(bare) && !rules.hosts.includes(name) && !rules.hosts.includes(whole))
    return "the Host is none of this relay's names";
  if (origin === undefined) return rules.requireOrigin ? "the Origin header is missing" : undefined;
  if (rules.origins.includes(origin)) return undefined;
  // `null`, of a page in a sandbox or a file, is no origin of ours
  const same = origin === `http://${whole}` || origin === `https://${whole}`;
  return same ? undefined : "the Origin is not allowed";
}

function authorityOf(host: string): { readonly name: string; readonly whole: string } | undefined {
  const found = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/.exec(host.toLowerCase());
  return found?.[1] === undefined ? undefined : { name: found[1], whole: host.toLowerCase() };
}
