/**
 * Calls a function for each of many items, with a slot for each item.
 *
 * MAP1  An item is read when the item before it has started. So the source is never read ahead by more than one item, and a
 *     call has at most one waiter in the queue.
 * MAP2  After a failure (unless `stopOnError` is false) or an abort, no further item starts and the source is closed.
 */
import { abortSignal, boolean, callback, check, checkOptions, kind, type Rules } from "./options.ts";
import type { AcquireOptions, Policy } from "./policy.ts";
import { abortOf, runWithSlot } from "./run-with-slot.ts";
import type { HeldSlot, Slot } from "./slot.ts";

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

const ITERABLE = kind("an iterable", (value) => !!(value as Iterable<unknown> | null)?.[Symbol.iterator]);

const RULES: Rules<MapOptions> = { signal: abortSignal, stopOnError: boolean };

/** Implements `Semaphore.map`. */
export async function mapItems<Item, T>(
  semaphore: { acquire(options: AcquireOptions): Promise<Slot> },
  policy: Policy,
  items: Iterable<Item> | AsyncIterable<Item>,
  fn: (item: Item, index: number) => T | Promise<T>,
  options: MapOptions = {},
): Promise<Awaited<T>[]> {
  check("fn", callback, fn);
  checkOptions(options, RULES);
  const { signal, stopOnError = true } = options;
  signal?.throwIfAborted();
  const tasks: Promise<Awaited<T>>[] = [];
  const errors: unknown[] = [];
  const stop = new AbortController();
  const stopped = { signal: stop.signal };

  const fail = (reason: unknown): void => void (stopOnError ? stop.abort(reason) : errors.push(reason));
  const begin = async (item: Item): Promise<void> => {
    const slot = await semaphore.acquire(stopped);
    // `fn` is called at once, before the push, so the number of tasks is the index of the item.
    const task = runWithSlot(slot as HeldSlot, policy, () => fn(item, tasks.length), stopped).catch(fail);
    tasks.push(task as Promise<Awaited<T>>);
  };
  const readAll = async (): Promise<Awaited<T>[]> => {
    if ((items as AsyncIterable<Item> | null)?.[Symbol.asyncIterator]) {
      for await (const item of items) await begin(item);
    } else {
      check("items", ITERABLE, items);
      for (const item of items as Iterable<Item>) await begin(item);
    }
    return Promise.all(tasks);
  };

  signal?.addEventListener("abort", () => stop.abort(signal.reason), stopped);
  try {
    const results = await Promise.race([abortOf(stopped), readAll()]);
    if (errors.length > 0) throw new AggregateError(errors, `${errors.length} of ${tasks.length} items failed`);
    return results;
  } finally {
    stop.abort();
  }
}
