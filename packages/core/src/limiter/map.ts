/**
 * `map` of a limiter: runs all items and returns their results in order.
 *
 * LMAP1  With `stopOnError`, no item starts after one has failed, and the source is closed.
 * LMAP2  Without it, all items run. Then one `AggregateError` reports all failures.
 * LMAP3  The number of items that were read and have not ended is at most the number of slots.
 */
import { abortSignal, boolean, callback, check, checkOptions, type Rules } from "../options.ts";
import type { Source } from "./source.ts";
import { type StreamGate, stream } from "./stream.ts";

/** Options of `Limiter.map`. */
export interface MapOptions {
  /** Ends the waits for slots and rejects the result. Work that has started continues. */
  signal?: AbortSignal | undefined;
  /**
   * Whether no new item starts after a failure. With `false`, all items run, and an `AggregateError` holds all
   * failures.
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
  // Not ordered: a slow item must not prevent later items from starting.
  const ends = stream(gate, items, keep, { ordered: false, signal });
  let count = 0;
  for (; !(await ends.next()).done; count++);
  if (errors.length > 0) throw new AggregateError(errors, `${errors.length} of ${count} items failed`);
  return results;
}
