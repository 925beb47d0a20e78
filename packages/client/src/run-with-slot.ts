import { check } from "./options.ts";
import type { ServiceSlot } from "./slot.ts";

/** The function that `run` calls with its slot. The slot is released when it returns or throws. */
export type Work<T> = (slot: ServiceSlot) => T | Promise<T>;

/** The scope behind every `run`: it always releases the slot. */
export async function runWithSlot<T>(
  work: Work<T>,
  acquire: () => Promise<ServiceSlot>,
  signal?: AbortSignal,
): Promise<Awaited<T>> {
  check({ work }, { work: "a function" }, "work");
  const slot = await acquire();
  try {
    // The signal may have aborted after the grant, but before this line runs.
    signal?.throwIfAborted();
    return await work(slot);
  } finally {
    await slot.release();
  }
}
