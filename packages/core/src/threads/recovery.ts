import {
  CANCELLED,
  DEAD,
  FREE,
  GRANTED,
  HIGHEST,
  isPending,
  isTag,
  kindOf,
  type Memory,
  OWNERS,
  ownerOf,
  ownerOfTag,
  stateOf,
  UNUSED,
  USED,
} from "./memory.ts";
import type { WaitQueue } from "./wait-queue.ts";

/**
 * Repairs grants after a thread died at the desk. A holder word with the tag of a cell that has no outcome yet is a
 * grant that stopped half way. The tag names the cell, so the grant can be finished, or undone if the waiter has left.
 */
export function finishGrants(memory: Memory, putOutcome: (cell: number, outcome: number) => void): void {
  const holders = new Map<number, number>();
  for (let holder = 0; holder < memory.maxHolders; holder++) {
    const word = memory.load(memory.holder(holder));
    if (isTag(word)) holders.set(word, holder);
  }
  for (let cell = 1; cell <= memory.load(HIGHEST); cell++) {
    const state = memory.load(memory.state(cell));
    const kind = kindOf(state);
    if (!isPending(kind) && kind !== CANCELLED) continue;
    const holder = holders.get(memory.load(memory.tag(cell)));
    if (holder !== undefined) putOutcome(cell, stateOf(GRANTED, ownerOf(state), holder));
  }
}

/** The attachments that are marked as dead and not cleaned up yet. */
export function findTheDead(memory: Memory): ReadonlySet<number> {
  const dead = new Set<number>();
  const owners = memory.load(OWNERS);
  for (let owner = 1; owner <= owners; owner++) {
    if (memory.load(memory.thread(owner)) === DEAD) dead.add(owner);
  }
  return dead;
}

/**
 * Takes back the slots and wait cells of dead threads. The owner of the desk calls it, and determines the dead threads
 * **before** it admits the arrivals: so none of their cells is in that stack any more. It can be repeated, because
 * thread words are cleared last.
 */
export function buryTheDead(memory: Memory, queue: WaitQueue, dead: ReadonlySet<number>): void {
  const used = memory.load(USED);
  for (let holder = 0; holder < used; holder++) {
    const word = memory.load(memory.holder(holder));
    if (isTag(word) && dead.has(ownerOfTag(word))) memory.swap(memory.holder(holder), word, FREE);
  }
  const highest = memory.load(HIGHEST);
  for (let cell = 1; cell <= highest; cell++) {
    const state = memory.load(memory.state(cell));
    const kind = kindOf(state);
    if (kind === UNUSED) continue;
    // A dead thread may have changed this state without sending the notification.
    if (!dead.has(ownerOf(state))) Atomics.notify(memory.words, memory.state(cell));
    else if ((isPending(kind) || kind === CANCELLED) && memory.load(memory.ticket(cell)) !== 0) queue.bury(cell);
    else memory.store(memory.state(cell), UNUSED);
  }
  for (const owner of dead) memory.store(memory.thread(owner), 0);
}
