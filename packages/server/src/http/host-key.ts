import { createHash } from "node:crypto";

export interface NamedHost {
  readonly host: string;
  readonly hostname: string | undefined;
}

/** The pool a call is about; undefined when it names none. An empty name is none. */
export function namedHost(call: { hostname?: string; hostnameHash?: string }): NamedHost | undefined {
  const hostname = call.hostname === "" ? undefined : call.hostname;
  const hash = call.hostnameHash === "" ? undefined : call.hostnameHash;
  const host = hash ?? (hostname === undefined ? undefined : hostKey(hostname.toLowerCase()));
  return host === undefined ? undefined : { host, hostname: hostname?.toLowerCase() };
}

/** Hosts are few and called often; the bound is for callers that make names up. */
const hashes = new Map<string, string>();
const MOST_HASHES = 1000;

/** `name` in lower case. */
export function hostKey(name: string): string {
  const known = hashes.get(name);
  if (known !== undefined) return known;
  if (hashes.size >= MOST_HASHES) hashes.clear();
  const hash = createHash("sha256").update(name).digest("hex");
  hashes.set(name, hash);
  return hash;
}
