import type { Attachment } from "./attachment.ts";
import { ASLEEP, CLOSED, GRANTED, holderOf, kindOf, NUDGED, REFUSED, stateOf, WAITING } from "./memory.ts";
import { SharedSlot } from "./shared-slot.ts";

/** The outcome of a wait cell, as its owner reads it. */
export type Outcome =
  | { readonly kind: "granted"; readonly slot: SharedSlot }
  | { readonly kind: "refused" }
  | { readonly kind: "closed" }
  /** Still waiting, and asked to call the desk (DESK3). Read again after the call. */
  | { readonly kind: "asked" }
  /** Still waiting. The state word is `asleep` now, so the serving thread will notify. */
  | { readonly kind: "pending"; readonly asleep: number };

export type FinalOutcome = Exclude<Outcome, { kind: "asked" } | { kind: "pending" }>;

const REFUSED_OUTCOME: Outcome = { kind: "refused" };
const CLOSED_OUTCOME: Outcome = { kind: "closed" };
const ASKED_OUTCOME: Outcome = { kind: "asked" };

/** Reads the outcome and gives the cell back, or prepares to sleep. */
export function readOutcome(attachment: Attachment, cell: number, tag: number): Outcome {
  const { memory, queue } = attachment;
  const asleep = stateOf(ASLEEP, attachment.identity.owner);
  for (;;) {
    const seen = memory.load(memory.state(cell));
    const kind = kindOf(seen);
    if (kind === ASLEEP) return { kind: "pending", asleep };
    if (kind === GRANTED) {
      queue.giveBack(cell);
      return { kind: "granted", slot: new SharedSlot(attachment, holderOf(seen), tag) };
    }
    if (kind === REFUSED || kind === CLOSED) {
      queue.giveBack(cell);
      return kind === REFUSED ? REFUSED_OUTCOME : CLOSED_OUTCOME;
    }
    if (kind === WAITING) memory.swap(memory.state(cell), seen, asleep);
    else if (kind === NUDGED && memory.swap(memory.state(cell), seen, stateOf(WAITING, attachment.identity.owner))) {
      return ASKED_OUTCOME;
    }
  }
}
