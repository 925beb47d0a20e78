/**
 * Work for each of many items, each with a slot of its own.
 *
 * I1  An item is read when the one before it has started, so a source is never read ahead by more than one item, and no
 *     more than one waiter of a call stands in the queue.
 * I2  After a failure (unless `stopOnError` is false) and after an abort no item starts, and the source is closed.
 */
import { abortSignal, boolean, callback, check, checkOptions, type Rules } from "./options.ts";
import type { AcquireOptions, Policy } from "./policy.ts";
import { runWithSlot } from "./run-with-slot.ts";
import type { HeldSlot, Slot } from "./slot.ts";

/** Options of `map`. */
export interface MapOptions {
  /** Ends the call: it rejects with the signal's own reason, and no further item starts. */
  signal?: AbortSignal | undefined;
  /**
   * Whether the first failure ends the call. `false`: every item is tried, and then the call rejects with an
   * `AggregateError` of all failures. Default true.
   */
  stopOnError?: boolean | undefined;
}

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
  const results: Awaited<T>[] = [];
  const errors: unknown[] = [];
  const running = new Set<Promise<unknown>>();
  const stop = new AbortController();
  let count = 0;

  const readAll = async (fail: (reason: unknown) => void) => {
    /** Whether to go on. */
    const begin = async (item: Item): Promise<boolean> => {
      const slot = stop.signal.aborted ? undefined : await semaphore.acquire({ signal: stop.signal });
      if (!slot || stop.signal.aborted) return Boolean(slot?.release()) && false;
      const index = count++;
      const task: Promise<void> = runWithSlot(slot as HeldSlot, policy, () => fn(item, index)).then(
        (value) => {
          results[index] = value;
          running.delete(task);
        },
        (reason) => {
          running.delete(task);
          fail(reason);
        },
      );
      running.add(task);
      return true;
    };
    if (Symbol.asyncIterator in items) {
      for await (const item of items) if (!(await begin(item))) break;
    } else for (const item of items) if (!(await begin(item))) break;
    await Promise.all(running);
  };

  await new Promise<void>((resolve, reject) => {
    const end = (settle: () => void) => {
      signal?.removeEventListener("abort", onAbort);
      settle();
      stop.abort();
    };
    const fail = (reason: unknown) => end(() => reject(reason));
    const onAbort = () => fail(signal?.reason);
    signal?.addEventListener("abort", onAbort);
    readAll(stopOnError ? fail : (reason) => void errors.push(reason)).then(() => end(resolve), fail);
  });
  if (errors.length > 0) throw new AggregateError(errors, `${errors.length} of ${count} items failed`);
  return results;
}
