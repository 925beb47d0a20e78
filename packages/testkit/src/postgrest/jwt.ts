import { createHmac, timingSafeEqual } from "node:crypto";

/** JSON Web Tokens signed with HS256, as PostgREST verifies them when `jwt-secret` is a plain string. */

export type Claims = { readonly [name: string]: unknown };

/** Names the problem of a token, with the code of PostgREST. */
export class JwtError extends Error {
  override readonly name = "JwtError";
  readonly code: "PGRST301" | "PGRST303";

  constructor(code: "PGRST301" | "PGRST303", message: string) {
    super(message);
    this.code = code;
  }
}

export function signJwt(claims: Claims, secret: string): string {
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
  return `${signed}.${signatureOf(signed, secret).toString("base64url")}`;
}

/** Throws a `JwtError`. */
export function verifyJwt(token: string, secret: string, nowSeconds: number): Claims {
  const [header = "", payload = "", signature = "", ...more] = token.split(".");
  const given = Buffer.from(signature, "base64url");
  const expected = signatureOf(`${header}.${payload}`, secret);
  const isSigned = given.length === expected.length && timingSafeEqual(given, expected);
  if (more.length > 0 || !isSigned || decode(header)["alg"] !== "HS256") {
    throw new JwtError("PGRST301", "No suitable key or wrong key type");
  }
  const claims = decode(payload);
  checkTimes(claims, nowSeconds);
  return claims;
}

/** Authentication: "We allow a 30-second clock skew when validating the above claims." */
const SKEW_SECONDS = 30;

/** Authentication, Time-Based claims validation: `exp`, `iat` and `nbf` "are validated". */
function checkTimes({ exp, iat, nbf }: Claims, nowSeconds: number): void {
  if (typeof exp === "number" && nowSeconds > exp + SKEW_SECONDS) throw new JwtError("PGRST303", "JWT expired");
  if (typeof nbf === "number" && nowSeconds < nbf - SKEW_SECONDS) throw new JwtError("PGRST303", "JWT not yet valid");
  if (typeof iat === "number" && nowSeconds < iat - SKEW_SECONDS) {
    throw new JwtError("PGRST303", "JWT issued at future");
  }
}

function signatureOf(signed: string, secret: string): Buffer {
  return createHmac("sha256", secret).update(signed).digest();
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function decode(part: string): Claims {
  try {
    return JSON.parse(Buffer.from(part, "base64url").toString()) as Claims;
  } catch {
    throw new JwtError("PGRST301", "Expected 3 parts in JWT; each in base64url");
  }
}
