/**
 * Work for each of many items, each with a slot of its own.
 *
 * MAP1  An item is read when the one before it has started, so a source is never read ahead by more than one item, and no
 *     more than one waiter of a call stands in the queue.
 * MAP2  After a failure (unless `stopOnError` is false) and after an abort no item starts, and the source is closed.
 */
import { abortSignal, boolean, callback, check, checkOptions, kind, type Rules } from "./options.ts";
import type { AcquireOptions, Policy } from "./policy.ts";
import { abortOf, runWithSlot } from "./run-with-slot.ts";
import type { HeldSlot, Slot } from "./slot.ts";

/** Options of `map`. */
export interface MapOptions {
  /** Ends the call: it rejects with the signal's own reason, and no further item starts. */
  signal?: AbortSignal | undefined;
  /**
   * Whether the first failure ends the call. `false`: every item is tried, and then the call rejects with an
   * `AggregateError` of all failures.
   * @defaultValue true
   */
  stopOnError?: boolean | undefined;
}

const ITERABLE = kind("an iterable", (value) => !!(value as Iterable<unknown> | null)?.[Symbol.iterator]);

const RULES: Rules<MapOptions> = { signal: abortSignal, stopOnError: boolean };

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
    // Starts at once, so the number of tasks is the index.
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
