import { SEMAPHORE_PREFIX } from "@slotkeeper/protocol";
import type { Digests } from "../platform/digests.ts";
import type { FieldProblem } from "../words/validator.ts";

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

/** How hosts are named. */
export interface HostDirectory {
  /** The names that the configuration contains exactly, by key. */
  readonly names: ReadonlyMap<string, string>;
  /** The key of a name that comes from `plainName`. */
  readonly keyOf: (name: string) => string;
}

export const NO_HOST: FieldProblem = { field: "hostname", message: "`hostname` or `hostnameHash` is required" };

const SHA256 = /^[0-9a-f]{64}$/;

/** Returns `undefined` if the call names no host. An empty name counts as absent. */
export function namedHost(call: HostNames, { names, keyOf }: HostDirectory): NamedHost | FieldProblem | undefined {
  const hash = call.hostnameHash === "" ? undefined : call.hostnameHash?.toLowerCase();
  if (call.hostname === undefined || call.hostname === "") {
    return hash === undefined ? undefined : { host: hash, hostname: names.get(hash) };
  }
  const hostname = plainName(call.hostname);
  if (hostname === "") return { field: "hostname", message: 'Expected `hostname` to be a host name, got "."' };
  if (hash === undefined) return { host: keyOf(hostname), hostname };
  if (hostname.startsWith(SEMAPHORE_PREFIX)) {
    const message = `\`hostnameHash\` cannot be combined with a \`hostname\` that begins with \`${SEMAPHORE_PREFIX}\``;
    return { field: "hostnameHash", message };
  }
  // The caller chose this key: nothing shows that the name belongs to it.
  if (!SHA256.test(hash)) return { host: hash, hostname: undefined };
  const host = keyOf(hostname);
  if (hash === host || hash === keyOf(call.hostname)) return { host, hostname };
  return { field: "hostnameHash", message: "Expected `hostnameHash` to be the SHA-256 of `hostname`" };
}

/** The name in the form that is hashed and compared. */
export function plainName(hostname: string): string {
  const name = hostname.toLowerCase();
  return name.endsWith(".") ? name.slice(0, -1) : name;
}

/** There are few hosts, and they are called often. The limit protects from callers that invent names. */
const MOST_KEYS = 1000;

/** Computes keys of hosts, and remembers them. */
export function hostKeys({ sha256 }: Pick<Digests, "sha256">): HostDirectory["keyOf"] {
  const keys = new Map<string, string>();
  return (name) => {
    let key = keys.get(name);
    if (key === undefined) {
      if (keys.size >= MOST_KEYS) keys.clear();
      key = sha256(name, "hex");
      keys.set(name, key);
    }
    return key;
  };
}
