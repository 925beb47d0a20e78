import { check } from "./options.ts";
import type { ServiceSlot } from "./slot.ts";

/** The function that `run` calls with its slot. The slot is released when it returns or throws. */
export type Work<T> = (slot: ServiceSlot) => T | Promise<T>;

/** The scope behind every `run`: the slot goes back whatever happens. */
export async function runWithSlot<T>(
  work: Work<T>,
  acquire: () => Promise<ServiceSlot>,
  signal?: AbortSignal,
): Promise<Awaited<T>> {
  check({ work }, { work: "a function" }, "work");
  const slot = await acquire();
  try {
    // It may have aborted between the grant and this caller's turn.
    signal?.throwIfAborted();
    return await work(slot);
  } finally {
    await slot.release();
  }
}
