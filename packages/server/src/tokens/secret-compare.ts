import { createHash, timingSafeEqual } from "node:crypto";

/**
 * Whether `given` is one of a few secrets. The time does not depend on either: digests have one length, every secret is
 * compared, and the loop does not stop at a match.
 */
export class SecretSet {
  readonly #digests: readonly Buffer[];

  constructor(secrets: readonly string[]) {
    this.#digests = secrets.map(digest);
  }

  has(given: string): boolean {
    const asked = digest(given);
    let isKnown = false;
    for (const known of this.#digests) isKnown = timingSafeEqual(asked, known) || isKnown;
    return isKnown;
  }
}

function digest(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}
