/**
 * The cryptography and the encodings that the service needs of its runtime. All of it answers at once: a token is
 * verified in the same turn in which its call arrived.
 */
export interface Digests {
  /** SHA-256 of the UTF-8 bytes of a text. */
  sha256(text: string, encoding: "hex" | "base64url"): string;
  /**
   * Returns a function that signs texts with this key: HMAC-SHA-256, in base64url. `isAscii` may save time; text of a
   * caller may contain anything.
   */
  signer(key: string): (text: string, isAscii?: boolean) => string;
  /** Compares in a time that does not depend on where the texts differ. */
  isSame(given: string, expected: string): boolean;
  /** The UTF-8 bytes of a text in base64url, and back. */
  toBase64url(text: string): string;
  fromBase64url(text: string): string;
}
