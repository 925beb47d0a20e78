/**
 * `map` of a limiter: the results of all items, in their order.
 *
 * LMAP1  With `stopOnError`, no item starts after one has failed, and the source is closed.
 * LMAP2  Without it every item is run; then all failures are thrown in one `AggregateError`.
 * LMAP3  At most as many items as there are slots have been read and not ended.
 */
import { abortSignal, boolean, callback, check, checkOptions, type Rules } from "../options.ts";
import type { Source } from "./source.ts";
import { type StreamGate, stream } from "./stream.ts";

/** Options of `Limiter.map`. */
export interface MapOptions {
  /** Ends the waits for slots, and with them the whole; work that has started goes on. */
  signal?: AbortSignal | undefined;
  /**
   * Start no new item after a failure. `false`: all are run, and an `AggregateError` has all failures.
   * @defaultValue true
   */
  stopOnError?: boolean | undefined;
}

const RULES: Rules<MapOptions> = { signal: abortSignal, stopOnError: boolean };

export async function mapThrough<Item, T, Slot, Options extends { signal?: AbortSignal | undefined }>(
  gate: StreamGate<Slot, Options>,
  items: Source<Item>,
  fn: (item: Item, index: number) => T | Promise<T>,
  options: MapOptions = {},
): Promise<Awaited<T>[]> {
  checkOptions(options, RULES);
  check("fn", callback, fn);
  const { signal, stopOnError = true } = options;
  const results: Awaited<T>[] = [];
  const errors: unknown[] = [];
  const keep = async (item: Item, index: number): Promise<void> => {
    try {
      results[index] = await fn(item, index);
    } catch (error) {
      if (stopOnError) throw error;
      errors.push(error);
    }
  };
  // Not ordered: a slow item must not keep those behind it from starting.
  const ends = stream(gate, items, keep, { ordered: false, signal });
  let count = 0;
  for (; !(await ends.next()).done; count++);
  if (errors.length > 0) throw new AggregateError(errors, `${errors.length} of ${count} items failed`);
  return results;
}
