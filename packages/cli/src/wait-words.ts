import type { Pending } from "@slotkeeper/client";
import { blockedByWords } from "@slotkeeper/server/words";
import { countOf, harmless, spanOf } from "./top/terminal-text.ts";

/** Who uses the slots that a command waits for, if the service shows it. */
export interface SlotUse {
  readonly inUse: number;
  readonly slots: number;
  /** The longest hold first. */
  readonly holders: readonly Holder[];
}

interface Holder {
  readonly bucket: string;
  readonly heldMs: number | undefined;
}

/** What is known about a wait: the last answer of the service, and the use of the slots. */
export interface WaitState {
  readonly pending: Pending | undefined;
  readonly use: SlotUse | undefined;
}

const HOLDERS_NAMED = 2;

/** `waiting for "build": 3 of 3 in use, place 2 of 4, about 40 s (held by ../feature-x since 2 min)`. */
export function waitingText(name: string, { pending, use }: WaitState): string {
  const estimate = pending?.estimatedWaitMs;
  const parts = [causeOf({ pending, use }), placeOf(pending), estimate && `about ${spanOf(estimate)}`];
  const known = parts.filter(Boolean).join(", ");
  const held = holdersOf(use);
  return `waiting for "${harmless(name)}"${known && `: ${known}`}${held && ` (${held})`}`;
}

/** Why no slot came in time: `place 1 of 2, 1 of 1 in use, held by "a" since 2 min`. Empty if nothing is known. */
export function timeoutText({ pending, use }: WaitState): string {
  return [placeOf(pending), causeOf({ pending, use }), holdersOf(use)].filter(Boolean).join(", ");
}

function placeOf(pending: Pending | undefined): string {
  return pending === undefined ? "" : `place ${countOf(pending.position)} of ${countOf(pending.waiters)}`;
}

function causeOf({ pending, use }: WaitState): string {
  const cause = pending?.blockedBy;
  if (cause === "store") return "the service cannot reach its store";
  if (use !== undefined && (cause === undefined || cause === "host-limit"))
    return `${countOf(use.inUse)} of ${countOf(use.slots)} in use`;
  return blockedByWords(cause) ?? "";
}

/** Slots of a semaphore have no bucket, so no holder has a name. */
function holdersOf(use: SlotUse | undefined): string {
  const [longest] = use?.holders ?? [];
  if (use === undefined || longest === undefined) return "";
  if (use.holders.every(({ bucket }) => bucket === "")) {
    return longest.heldMs === undefined ? "" : `longest hold ${spanOf(longest.heldMs)}`;
  }
  const named = use.holders.slice(0, HOLDERS_NAMED).map(holderText);
  const hidden = use.holders.length - named.length;
  return `held by ${named.join(" and ")}${hidden > 0 ? `, and ${countOf(hidden)} more` : ""}`;
}

function holderText({ bucket, heldMs }: Holder): string {
  const name = bucket === "" ? "(no bucket)" : harmless(bucket);
  return heldMs === undefined ? name : `${name} since ${spanOf(heldMs)}`;
}
