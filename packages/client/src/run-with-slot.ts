import type { ServiceSlot } from "./slot.ts";

export type Work<T> = (slot: ServiceSlot) => T | Promise<T>;

/** The scope behind every `run`: the slot goes back whatever happens. */
export async function runWithSlot<T>(slot: ServiceSlot, work: Work<T>, signal?: AbortSignal): Promise<Awaited<T>> {
  try {
    // It may have aborted between the grant and this caller's turn.
    signal?.throwIfAborted();
    return await work(slot);
  } finally {
    await slot.release();
  }
}
