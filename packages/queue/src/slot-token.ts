/**
 * Slot tokens: `slot_<host key>.<secret>`. A release or a renewal needs nothing else. Logs and secret scanners
 * recognize them by their prefix.
 */
const PREFIX = "slot_";

/** `secret`: at least 128 random bits, without a dot. */
export function slotTokenOf(host: string, secret: string): string {
  return `${PREFIX}${host}.${secret}`;
}

/** Undefined: the text is not a slot token. */
export function hostOfToken(slotToken: string): string | undefined {
  const end = slotToken.lastIndexOf(".");
  return slotToken.startsWith(PREFIX) && end > PREFIX.length ? slotToken.slice(PREFIX.length, end) : undefined;
}
