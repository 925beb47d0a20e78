import { createHash } from "node:crypto";

export interface NamedHost {
  readonly host: string;
  readonly hostname: string | undefined;
}

/** The pool a call is about; undefined when it names none. An empty name is none. */
export function namedHost(call: { hostname?: string; hostnameHash?: string }): NamedHost | undefined {
  const hostname = call.hostname === "" ? undefined : call.hostname;
  const hash = call.hostnameHash === "" ? undefined : call.hostnameHash;
  const host =
    hash ?? (hostname === undefined ? undefined : createHash("sha256").update(hostname.toLowerCase()).digest("hex"));
  return host === undefined ? undefined : { host, hostname: hostname?.toLowerCase() };
}
