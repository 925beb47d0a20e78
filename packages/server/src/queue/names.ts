import { type Demand, SEMAPHORE_PREFIX, type SessionClaims } from "@slotkeeper/protocol";
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

/**
 * Signed names of sessions: `fq1.<key id>.<claims>.<signature>`. With them a session survives a restart and moves
 * between instances.
 *
 * TOKEN1  Only the owner of a key can create a token that verifies. The comparison takes the same time wherever the
 *     texts differ.
 * TOKEN2  The first key signs, all keys verify.
 * TOKEN3  A signature covers every byte before it, including the version and the key id.
 * TOKEN4  Nothing in a token is used before its signature is verified.
 *
 * The holder of a token can read its claims, so they contain no secrets.
 */

/** What a token turned out to be. */
export type Verified =
  | { readonly kind: "valid"; readonly claims: SessionClaims }
  /** Not ours: from another fleet, signed with a removed key, or not a token at all. */
  | { readonly kind: "unknown" }
  /** Signed with one of our keys, but changed. */
  | { readonly kind: "forged" };

interface Key {
  readonly id: string;
  readonly sign: ReturnType<Digests["signer"]>;
}

const VERSION = "fq1";

/** Signs and verifies the names of sessions. */
export class QueryTokens {
  readonly #keys: readonly Key[];
  readonly #digests: Digests;
  readonly #keyOf: HostDirectory["keyOf"];

  constructor(secrets: readonly string[], digests: Digests, keyOf: HostDirectory["keyOf"]) {
    this.#digests = digests;
    this.#keyOf = keyOf;
    // The id identifies a key without revealing any of it.
    this.#keys = secrets.map((secret) => ({
      id: digests.sha256(`slotkeeper token key ${secret}`, "base64url").slice(0, 8),
      sign: digests.signer(secret),
    }));
  }

  /** `verified` is the token of this call. If it has the same claims and key, it is returned and nothing is signed. */
  sign(claims: SessionClaims, verified?: string): string {
    const { id, sign } = this.#signer;
    const text = `${VERSION}.${id}.${this.#digests.toBase64url(JSON.stringify(pack(claims, this.#keyOf)))}`;
    return verified?.startsWith(`${text}.`) === true ? verified : `${text}.${sign(text, true)}`;
  }

  verify(token: string): Verified {
    const [version, id, payload, mac, ...more] = token.split(".");
    const key = this.#keys.find((known) => known.id === id);
    if (version !== VERSION || key === undefined) return { kind: "unknown" };
    if (payload === undefined || mac === undefined || more.length > 0) return { kind: "forged" };
    // Compared as text, not as bytes: base64 can write the same bytes in several ways, and we write only one.
    const isOurs = this.#digests.isSame(mac, key.sign(`${version}.${id}.${payload}`));
    if (!isOurs) return { kind: "forged" };
    return { kind: "valid", claims: unpack(JSON.parse(this.#digests.fromBase64url(payload)) as Packed, this.#keyOf) };
  }

  /**
   * The id that every instance gives to the session of a request, so that a repeated request is the same session
   * everywhere. The bucket is part of it, because callers of different buckets may choose the same request id.
   */
  sessionIdOf(host: string, bucket: string, requestId: string): string {
    return this.#signer.sign(JSON.stringify(["session", host, bucket, requestId])).slice(0, 27);
  }

  get #signer(): Key {
    const [first] = this.#keys;
    if (first === undefined) throw new RangeError("Expected at least one token key, got none");
    return first;
  }
}

/**
 * The host that a token names, not verified: to find the place that can verify it, and for nothing else (TOKEN4).
 * Undefined: it is not a token.
 */
export function unverifiedHost(
  token: string,
  { fromBase64url }: Pick<Digests, "fromBase64url">,
  keyOf: HostDirectory["keyOf"],
): string | undefined {
  const [version, , payload] = token.split(".");
  if (version !== VERSION || payload === undefined) return undefined;
  try {
    const { host } = unpack(JSON.parse(fromBase64url(payload)) as Packed, keyOf);
    return typeof host === "string" ? host : undefined;
  } catch {
    return undefined;
  }
}

/** A host with a name does not also need its hash. */
type FirstPacked = readonly [
  id: string,
  host: string | null,
  bucket: string,
  arrivedAt: number,
  deadlineAt: number,
  hostname: string | null,
  throttleWindowMs: number | null,
  limit: number | null,
];
/** Most tokens have none of these: a token is sent with every call, so it is kept short. */
type Packed = readonly [...first: FirstPacked, pendingAt?: number | null, demand?: Demand];

function pack(claims: SessionClaims, keyOf: HostDirectory["keyOf"]): Packed {
  const { id, host, bucket, arrivedAt, deadlineAt, hostname, throttleWindowMs, limit, pendingAt, demand } = claims;
  const key = hostname !== undefined && keyOf(hostname) === host ? null : host;
  const first: FirstPacked = [
    id,
    key,
    bucket,
    arrivedAt,
    deadlineAt,
    hostname ?? null,
    throttleWindowMs ?? null,
    limit ?? null,
  ];
  if (demand !== undefined) return [...first, pendingAt ?? null, demand];
  return pendingAt === undefined ? first : [...first, pendingAt];
}

function unpack(packed: Packed, keyOf: HostDirectory["keyOf"]): SessionClaims {
  const [id, host, bucket, arrivedAt, deadlineAt, hostname, throttleWindowMs, limit, pendingAt, demand] = packed;
  return {
    id,
    host: host ?? keyOf(hostname ?? ""),
    bucket,
    arrivedAt,
    deadlineAt,
    ...(hostname === null ? {} : { hostname }),
    ...(throttleWindowMs === null ? {} : { throttleWindowMs }),
    ...(limit === null ? {} : { limit }),
    ...(pendingAt === undefined || pendingAt === null ? {} : { pendingAt }),
    ...(demand === undefined ? {} : { demand }),
  };
}
