import { randomFillSync } from "node:crypto";

/** Names nobody can guess. The prefix of a slot's token is what the scrubber knows it by. */

export const newSlotToken = (): string => `slot_${randomText(24)}`;
export const newSessionId = (): string => randomText(18);
export const newTokenKey = (): string => randomText(32);

/** Asking the system for random bytes costs more than all else a name takes: they are fetched in advance, used once, wiped. */
const pool = Buffer.alloc(4096);
let used = pool.length;

/** Nothing secret: it is told apart from others by its process and its number. */
export const newRequestId = (): string => requestsOf + (requests++).toString(36).padStart(6, "0");
let requests = 0;

function randomText(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const text = pool.toString("base64url", used, used + bytes);
  pool.fill(0, used, used + bytes);
  used += bytes;
  return text;
}

const requestsOf = randomText(4);
