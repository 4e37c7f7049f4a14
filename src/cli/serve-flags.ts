import { readFileSync } from "node:fs";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Authenticate, jsonWebTokens, type RelayLimits, type StaticTokens, staticTokens } from "../relay/index.ts";

/** The flags of `enginewire serve`, as commander hands them over. */
export interface ServeFlags {
  readonly handshake: string;
  readonly count: number;
  readonly first: number;
  readonly advertisedHost?: string;
  readonly acceptTimeoutS: number;
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly origin: readonly string[];
  readonly hostName: readonly string[];
  readonly requireOrigin: boolean;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tokens?: string;
  readonly tokensFromEnvironment?: string;
  readonly jwtKeys?: string;
  readonly jwtIssuer?: string;
  readonly jwtAudience?: string;
  readonly jwtSingleUse: boolean;
  readonly audit?: string;
  readonly metrics: boolean;
  readonly limit: Partial<Record<keyof RelayLimits, number>>;
  readonly allowAnyoneOnTheNetworkWithoutAuthentication: boolean;
}

function number(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw new InvalidArgumentError(`${JSON.stringify(text)} is no number`);
  return value;
}

function collect(text: string, before: readonly string[]): readonly string[] {
  return [...before, text];
}

function limit(text: string, before: Record<string, number>): Record<string, number> {
  const [, name, value] = /^(\w+)=(\d+)$/.exec(text) ?? [];
  if (name === undefined) throw new InvalidArgumentError("a limit is NAME=NUMBER, such as callsInFlight=16");
  return { ...before, [name]: Number(value) };
}

/** Adds the flags. */
export function addServeFlags(command: Command): Command {
  return command
    .addOption(new Option("--count <n>", "how many engines to expect").argParser(number).makeOptionMandatory())
    .option("--handshake <address>", "where engines dial in", "tcp://127.0.0.1:30500")
    .addOption(new Option("--first <n>", "index of the first engine").argParser(number).default(0))
    .option("--advertised-host <name>", "host name that engines reach this process under")
    .addOption(new Option("--accept-timeout-s <s>", "how long to wait for the engines").argParser(number).default(600))
    .option("--host <address>", "address to serve on", "127.0.0.1")
    .addOption(new Option("--port <n>", "port to serve on; 0 takes a free one").argParser(number).default(30_600))
    .option("--path <path>", "path of the WebSocket", "/")
    .addOption(
      new Option("--origin <origin>", "origin of pages that may connect (may be repeated)")
        .argParser(collect)
        .default([], "the relay's own"),
    )
    .addOption(
      new Option("--host-name <name>", "name under which the relay is reached (may be repeated)")
        .argParser(collect)
        .default([], "IP addresses"),
    )
    .option("--require-origin", "keep clients out that are no pages", false)
    .option("--tls-cert <file>", "certificate, with its chain, in PEM")
    .option("--tls-key <file>", "its key, in PEM")
    .addOption(new Option("--tokens <file>", "file with tokens; SIGHUP reads it anew").conflicts(["tokensFromEnvironment", "jwtKeys"]))
    .addOption(new Option("--tokens-from-environment <name>", "environment variable with the same text").conflicts("jwtKeys"))
    .option("--jwt-keys <url>", "where the keys of JSON Web Tokens are published")
    .option("--jwt-issuer <issuer>", "who must have issued them")
    .option("--jwt-audience <audience>", "whom they must be for")
    .option("--jwt-single-use", "accept each token for one connection", false)
    .option("--audit <file>", "append state-changing and denied calls, one JSON line each; SIGUSR2 opens the file anew")
    .option("--metrics", "serve /metrics to credentials with the scope metrics", false)
    .addOption(new Option("--limit <name=number>", "a limit of the relay (may be repeated)").argParser(limit).default({}, "see the guide"))
    .option(
      "--allow-anyone-on-the-network-without-authentication",
      "serve on an address of the network without tokens: whoever reaches it can stop the engines",
      false,
    );
}

/** What decides about credentials, and what reads it anew. */
export async function authenticationOf(
  flags: ServeFlags,
): Promise<{ readonly authenticate?: Authenticate; readonly reload?: StaticTokens["reload"] }> {
  const { tokens, tokensFromEnvironment, jwtKeys, jwtIssuer = "", jwtAudience = "", jwtSingleUse } = flags;
  if (tokens !== undefined) return staticTokens({ file: tokens });
  if (tokensFromEnvironment !== undefined) return staticTokens({ environment: tokensFromEnvironment });
  if (jwtKeys === undefined) return {};
  return { authenticate: await jsonWebTokens({ keys: jwtKeys, issuer: jwtIssuer, audience: jwtAudience, singleUse: jwtSingleUse }) };
}

/** The certificate and its key. Throws what reading throws. */
export function tlsOf({ tlsCert, tlsKey }: ServeFlags): { readonly tls?: { readonly cert: Buffer; readonly key: Buffer } } {
  if (tlsCert === undefined && tlsKey === undefined) return {};
  if (tlsCert === undefined || tlsKey === undefined) throw new Error("--tls-cert and --tls-key go together");
  return { tls: { cert: readFileSync(tlsCert), key: readFileSync(tlsKey) } };
}

/** What stands below the flags in `--help`. */
export const serveHelp = `
Lines on stdout are JSON objects with an "event": "bound" when engines can dial in, "serving" when clients can connect, "stopping",
"stopped". What a log should have goes to stderr, one JSON object a line. SIGTERM and SIGINT take no more calls, wait for those under
way (the limit drainMs), close the engines' connection and exit with 0; a second one exits at once.`;
