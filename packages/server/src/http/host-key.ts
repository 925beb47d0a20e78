import { hash as digest } from "node:crypto";
import { SEMAPHORE_PREFIX } from "@slotkeeper/protocol";
import type { FieldProblem } from "../validation/field-problem.ts";

/**
 * Finds the host of a call.
 *
 * HOSTKEY1  A host has one key in any spelling: its hash in lower case, otherwise the SHA-256 of its name in lower case
 *     without a trailing dot. A caller may also send the hash of the name as it spells it.
 * HOSTKEY2  The resulting name belongs to the key. Only this name selects overrides, so no caller can apply the limits
 *     of another host, or of a semaphore, to a host.
 * HOSTKEY3  A caller that sends only the hash also gets the overrides of an exact name.
 */
export interface NamedHost {
  readonly host: string;
  readonly hostname: string | undefined;
}

export interface HostNames {
  readonly hostname?: string | undefined;
  readonly hostnameHash?: string | undefined;
}

/** The names that the configuration contains exactly, by key. */
export type KnownNames = ReadonlyMap<string, string>;

export const NO_HOST: FieldProblem = { field: "hostname", message: "`hostname` or `hostnameHash` is required" };

const SHA256 = /^[0-9a-f]{64}$/;

/** Returns `undefined` if the call names no host. An empty name counts as absent. */
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
  // The caller chose this key: nothing shows that the name belongs to it.
  if (!SHA256.test(hash)) return { host: hash, hostname: undefined };
  const host = hostKey(hostname);
  if (hash === host || hash === hostKey(call.hostname)) return { host, hostname };
  return { field: "hostnameHash", message: "Expected `hostnameHash` to be the SHA-256 of `hostname`" };
}

/** The name in the form that is hashed and compared. */
export function plainName(hostname: string): string {
  const name = hostname.toLowerCase();
  return name.endsWith(".") ? name.slice(0, -1) : name;
}

/** There are few hosts, and they are called often. The limit protects from callers that invent names. */
const hashes = new Map<string, string>();
const MOST_HASHES = 1000;

/** The key of a host, if `name` comes from `plainName`. */
export function hostKey(name: string): string {
  const known = hashes.get(name);
  if (known !== undefined) return known;
  if (hashes.size >= MOST_HASHES) hashes.clear();
  // Half the time of a hash object. It is a noticeable part of what a new host costs.
  const key = digest("sha256", name, "hex");
  hashes.set(name, key);
  return key;
}
