/**
 * Calls a function for each of many items, with a slot for each item.
 *
 * MAP1  An item is read when the item before it has started. So the source is never read ahead by more than one item, and a
 *     call has at most one waiter in the queue.
 * MAP2  After a failure (unless `stopOnError` is false) or an abort, no further item starts and the source is closed. A
 *     failure counts before the slot of its item is released, so the slot goes to no further item.
 * MAP3  If a slot is refused (the gate is closed, its queue is full, a timeout), the call ends, whatever `stopOnError` is.
 */
import { abortSignal, boolean, callback, check, kind, type Rules, readOptions } from "./options.ts";
import type { Policy } from "./policy.ts";
import { abortOf, runWithSlot } from "./run-with-slot.ts";
import type { Slot } from "./slot.ts";

/** Options of `map`. */
export interface MapOptions {
  /** Ends the call when it aborts: the call rejects with the reason of the signal, and no further item starts. */
  signal?: AbortSignal | undefined;
  /**
   * Whether the first failure ends the call. With `false`, every item is tried. If any of them failed, the call then
   * rejects with an `AggregateError` of all failures.
   * @defaultValue true
   */
  stopOnError?: boolean | undefined;
}

const ITERABLE = /* @__PURE__ */ kind(
  "an iterable",
  (value) => !!(value as Iterable<unknown> | null)?.[Symbol.iterator],
);

const RULES: Rules<MapOptions> = { signal: abortSignal, stopOnError: boolean };

/** Implements `map` of every class. `close` closes the source; it is called when the call ends, even during a read. */
export async function mapItems<Item, T>(
  gate: { acquire(options: { signal: AbortSignal }): Promise<Pick<Slot, "release">> },
  policy: Pick<Policy, "abortOnExpiry">,
  items: Iterable<Item> | AsyncIterable<Item>,
  fn: (item: Item, index: number) => T | Promise<T>,
  options?: MapOptions,
  close?: () => void,
): Promise<Awaited<T>[]> {
  check("fn", callback, fn);
  const { signal, stopOnError = true } = readOptions(options, RULES);
  signal?.throwIfAborted();
  const errors: unknown[] = [];
  const runs: Promise<Awaited<T>>[] = [];
  const stop = new AbortController();
  const stopped = { signal: stop.signal };

  const fail = (error: unknown): never => {
    if (stopOnError) stop.abort(error);
    throw error;
  };
  const begin = async (item: Item): Promise<void> => {
    const slot = await gate.acquire(stopped);
    // Called at once, before the push, so the number of runs is the index of the item.
    const work = async (): Promise<Awaited<T>> => await fn(item, runs.length);
    runs.push(
      // The first `fail` is called before the slot is released. The second is for an expiry, which rejects the run earlier.
      runWithSlot(slot, policy, () => work().catch(fail), stop.signal)
        .catch(fail)
        .catch((error: unknown) => errors.push(error) as never),
    );
  };
  const readAll = async (): Promise<Awaited<T>[]> => {
    if ((items as AsyncIterable<Item> | null)?.[Symbol.asyncIterator]) {
      for await (const item of items) await begin(item);
    } else {
      check("items", ITERABLE, items);
      for (const item of items as Iterable<Item>) await begin(item);
    }
    return Promise.all(runs);
  };

  signal?.addEventListener("abort", () => stop.abort(signal.reason), stopped);
  try {
    const results = await Promise.race([abortOf(stopped), readAll()]);
    if (errors.length > 0) throw new AggregateError(errors, `${errors.length} of ${runs.length} items failed`);
    return results;
  } finally {
    stop.abort();
    close?.();
  }
}
