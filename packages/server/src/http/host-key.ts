import { createHash } from "node:crypto";
import { SEMAPHORE_PREFIX } from "@slotkeeper/protocol";
import type { FieldProblem } from "../validation/field-problem.ts";

/**
 * Which pool a call is about.
 *
 * HOSTKEY1 a host has one key however it is spelled: its hash in lower case, else the SHA-256 of its name in lower case without
 * a trailing dot. HOSTKEY2 the name that comes out belongs to the key: it alone selects overrides, so that no caller can put
 * another host's limits, or a semaphore's, on a pool. HOSTKEY3 a caller that sends the hash alone gets the overrides of an
 * exact name all the same.
 */
export interface NamedHost {
  readonly host: string;
  readonly hostname: string | undefined;
}

export interface HostNames {
  readonly hostname?: string | undefined;
  readonly hostnameHash?: string | undefined;
}

/** The names that the configuration spells out, by key. */
export type KnownNames = ReadonlyMap<string, string>;

export const NO_HOST: FieldProblem = { field: "hostname", message: "`hostname` or `hostnameHash` is required" };

const SHA256 = /^[0-9a-f]{64}$/;

/** Undefined: the call names no host. Empty names are none. */
export function namedHost(call: HostNames, known: KnownNames): NamedHost | FieldProblem | undefined {
  const hash = call.hostnameHash === "" ? undefined : call.hostnameHash?.toLowerCase();
  if (call.hostname === undefined || call.hostname === "") {
    return hash === undefined ? undefined : { host: hash, hostname: known.get(hash) };
  }
  const hostname = plainName(call.hostname);
  if (hostname === "") return { field: "hostname", message: 'Expected `hostname` to be a host name, got "."' };
  if (hash === undefined) return { host: hostKey(hostname), hostname };
  if (hostname.startsWith(SEMAPHORE_PREFIX)) {
    const message = `\`hostnameHash\` cannot be combined with a \`hostname\` that begins with \`${SEMAPHORE_PREFIX}\``;
    return { field: "hostnameHash", message };
  }
  // A key of the caller's own making: nothing shows that the name belongs to it.
  if (!SHA256.test(hash)) return { host: hash, hostname: undefined };
  if (hash === hostKey(hostname)) return { host: hash, hostname };
  return {
    field: "hostnameHash",
    message: `Expected \`hostnameHash\` to be the SHA-256 of the lower-cased \`hostname\``,
  };
}

/** The name as it is hashed and compared. */
export function plainName(hostname: string): string {
  const name = hostname.toLowerCase();
  return name.endsWith(".") ? name.slice(0, -1) : name;
}

/** Hosts are few and called often; the bound is for callers that make names up. */
const hashes = new Map<string, string>();
const MOST_HASHES = 1000;

/** `name` as `plainName` gives it. */
export function hostKey(name: string): string {
  const known = hashes.get(name);
  if (known !== undefined) return known;
  if (hashes.size >= MOST_HASHES) hashes.clear();
  const hash = createHash("sha256").update(name).digest("hex");
  hashes.set(name, hash);
  return hash;
}
