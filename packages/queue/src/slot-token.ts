/**
 * Slot tokens: `slot_<host key>.<secret>`. A release or a renewal needs nothing else. Logs and secret scanners
 * recognize them by their prefix.
 */
const PREFIX = "slot_";

/** `secret`: at least 128 random bits, without a dot. */
export function slotTokenOf(host: string, secret: string): string {
  return `${PREFIX}${host}.${secret}`;
}

/**
 * Undefined: the text is not a slot token. No host has a key with U+0000, which PostgreSQL cannot store: a call for such
 * a key would fail and be repeated for ever.
 */
export function hostOfToken(slotToken: string): string | undefined {
  const end = slotToken.lastIndexOf(".");
  if (!slotToken.startsWith(PREFIX) || end <= PREFIX.length || slotToken.includes("\0")) return undefined;
  return slotToken.slice(PREFIX.length, end);
}
