import type { Attachment } from "./attachment.ts";
import { kindOf, WAITING } from "./memory.ts";
import { type FinalOutcome, readOutcome } from "./outcome.ts";

/**
 * How often a thread checks before it sleeps: about two microseconds. A slot that is released within that time is
 * noticed without a system call (a hand-over below one microsecond instead of 10 to 15). More checks measured worse: a
 * woken thread often runs on the core of the thread that woke it, so a long spin delays the thread that it waits for.
 */
const SPINS = 200;

export type SyncOutcome = FinalOutcome | { readonly kind: "timed-out" };

/**
 * Blocks this thread until its cell has an outcome or `until` has passed. Wakes in between to take back overdue slots.
 */
export function waitSync(
  attachment: Attachment,
  { cell, tag }: { cell: number; tag: number },
  { until, now, spins = SPINS }: { until: number; now: () => number; spins?: number },
): SyncOutcome {
  const { memory } = attachment;
  const word = memory.state(cell);
  for (let spin = 0; spin < spins && kindOf(memory.load(word)) === WAITING; spin++);
  for (;;) {
    const outcome = readOutcome(attachment, cell, tag);
    if (outcome.kind === "asked") {
      attachment.call();
      continue;
    }
    if (outcome.kind !== "pending") return outcome;
    const leftMs = until - now();
    if (leftMs <= 0) {
      if (attachment.cancel(cell)) return { kind: "timed-out" };
      continue;
    }
    const expiryMs = memory.ttlMs > 0 ? attachment.leases.nextMs() : Number.POSITIVE_INFINITY;
    const ended = Atomics.wait(memory.words, word, outcome.asleep, Math.min(leftMs, expiryMs));
    if (ended === "timed-out" && expiryMs <= leftMs) attachment.call();
  }
}
