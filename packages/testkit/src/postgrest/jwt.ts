import { errors, type JWTPayload, jwtVerify, SignJWT } from "jose";
import { ApiError } from "./api-error.ts";

/** JSON Web Tokens signed with HS256, as PostgREST verifies them when `jwt-secret` is a plain string. */
export type Claims = JWTPayload;

/** Authentication: "We allow a 30-second clock skew when validating the above claims." */
const SKEW_SECONDS = 30;

const UNTIMELY: { readonly [claim: string]: string } = { exp: "JWT expired", nbf: "JWT not yet valid" };

export function signJwt(claims: Claims, secret: string): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(Buffer.from(secret));
}

/**
 * PGRST301 (401): "Any error related to the verification of the JWT, which means that the JWT provided is invalid in
 * some way." PGRST303 (401): the claims are not valid. Authentication: `exp`, `iat` and `nbf` "are validated".
 */
export async function verifyJwt(token: string, secret: string): Promise<Claims> {
  const options = { algorithms: ["HS256"], clockTolerance: SKEW_SECONDS };
  const { payload } = await jwtVerify(token, Buffer.from(secret), options).catch((error: unknown) => {
    if (error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed) {
      throw new ApiError(401, "PGRST303", UNTIMELY[error.claim] ?? error.message);
    }
    throw new ApiError(401, "PGRST301", "No suitable key or wrong key type");
  });
  // The library checks it only together with the greatest age of a token.
  if ((payload.iat ?? 0) > Date.now() / 1000 + SKEW_SECONDS)
    throw new ApiError(401, "PGRST303", "JWT issued at future");
  return payload;
}
