import { createHash, createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";
import type { SessionClaims } from "@slotkeeper/protocol";
import { hostKey } from "../http/host-key.ts";

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

export type Verified =
  | { readonly kind: "valid"; readonly claims: SessionClaims }
  /** Not ours: from another fleet, signed with a removed key, or not a token at all. */
  | { readonly kind: "unknown" }
  /** Signed with one of our keys, but changed. */
  | { readonly kind: "forged" };

interface Key {
  readonly id: string;
  readonly secret: KeyObject;
}

const VERSION = "fq1";

export class QueryTokens {
  readonly #keys: readonly Key[];

  constructor(secrets: readonly string[]) {
    this.#keys = secrets.map((secret) => ({ id: keyId(secret), secret: createSecretKey(secret, "utf8") }));
  }

  /** `verified` is the token of this call. If it has the same claims and key, it is returned and nothing is signed. */
  sign(claims: SessionClaims, verified?: string): string {
    const { id, secret } = this.#signer;
    const text = `${VERSION}.${id}.${Buffer.from(JSON.stringify(pack(claims))).toString("base64url")}`;
    // The text is ASCII only, so latin1 gives the same bytes as UTF-8, but faster. Text of a caller may contain
    // anything.
    return verified?.startsWith(`${text}.`) === true ? verified : `${text}.${signature(text, secret, "latin1")}`;
  }

  verify(token: string): Verified {
    const [version, id, payload, mac, ...more] = token.split(".");
    const key = this.#keys.find((known) => known.id === id);
    if (version !== VERSION || key === undefined) return { kind: "unknown" };
    if (payload === undefined || mac === undefined || more.length > 0) return { kind: "forged" };
    const expected = signature(`${version}.${id}.${payload}`, key.secret);
    // Compared as text, not as bytes: base64 can write the same bytes in several ways, and we write only one.
    const isOurs = constantTimeEqual(mac, expected);
    return isOurs ? { kind: "valid", claims: unpack(payload) } : { kind: "forged" };
  }

  /**
   * The id that every instance gives to the session of a request, so that a repeated request is the same session
   * everywhere. The bucket is part of it, because callers of different buckets may choose the same request id.
   */
  sessionIdOf(host: string, bucket: string, requestId: string): string {
    const text = JSON.stringify(["session", host, bucket, requestId]);
    return createHmac("sha256", this.#signer.secret).update(text).digest("base64url").slice(0, 27);
  }

  get #signer(): Key {
    const [first] = this.#keys;
    if (first === undefined) throw new RangeError("Expected at least one token key, got none");
    return first;
  }
}

function signature(text: string, secret: KeyObject, encoding: "utf8" | "latin1" = "utf8"): string {
  return createHmac("sha256", secret).update(text, encoding).digest("base64url");
}

function constantTimeEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Identifies a key without revealing any of it. */
function keyId(secret: string): string {
  return createHash("sha256").update(`slotkeeper token key ${secret}`).digest("base64url").slice(0, 8);
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
type Packed = FirstPacked | readonly [...first: FirstPacked, pendingAt: number];

function pack(claims: SessionClaims): Packed {
  const { id, host, bucket, arrivedAt, deadlineAt, hostname, throttleWindowMs, limit, pendingAt } = claims;
  const isNamed = hostname !== undefined && hostKey(hostname) === host;
  const key = isNamed ? null : host;
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
  return pendingAt === undefined ? first : [...first, pendingAt];
}

function unpack(payload: string): SessionClaims {
  const packed = JSON.parse(Buffer.from(payload, "base64url").toString()) as Packed;
  const [id, host, bucket, arrivedAt, deadlineAt, hostname, throttleWindowMs, limit, pendingAt] = packed;
  return {
    id,
    host: host ?? hostKey(hostname ?? ""),
    bucket,
    arrivedAt,
    deadlineAt,
    ...(hostname === null ? {} : { hostname }),
    ...(throttleWindowMs === null ? {} : { throttleWindowMs }),
    ...(limit === null ? {} : { limit }),
    ...(pendingAt === undefined ? {} : { pendingAt }),
  };
}
