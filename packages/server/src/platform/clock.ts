import { type Clock, realClock } from "slotkeeper";
import { LONGEST_DELAY_MS } from "slotkeeper/parts";

/** Real time until it is stopped. After that, no timer fires and none is set. */
export class ServiceClock implements Clock {
  readonly #timers = new Set<unknown>();
  #isStopped = false;

  now(): number {
    return realClock.now();
  }

  setTimer(callback: () => void, delayMs: number): unknown {
    if (this.#isStopped) return undefined;
    const fire = () => {
      this.#timers.delete(timer);
      callback();
    };
    const timer = realClock.setTimer(fire, Math.min(delayMs, LONGEST_DELAY_MS));
    this.#timers.add(timer);
    return timer;
  }

  clearTimer(timer: unknown): void {
    this.#timers.delete(timer);
    realClock.clearTimer(timer);
  }

  stop(): void {
    this.#isStopped = true;
    for (const timer of this.#timers) realClock.clearTimer(timer);
    this.#timers.clear();
  }
}

/**
 * Turns of the event loop. Long work is divided among them, so that it does not delay other requests, and calls that
 * arrived together are decided together.
 */

/** The end of this turn, when all received data has been read. Not every runtime has `setImmediate`. */
const atEndOfTurn: (task: () => void) => unknown = globalThis.setImmediate ?? ((task) => setTimeout(task, 0));

/** Resolves when the event loop has handled what waits: other requests, timers. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => atEndOfTurn(resolve));
}

/** Defers tasks to the end of the turn. They share one immediate (S5: each task belongs to another host). */
export function endOfTurn(): (task: () => void) => void {
  let waiting: (() => void)[] = [];
  const run = () => {
    const tasks = waiting;
    waiting = [];
    for (const task of tasks) task();
  };
  return (task) => {
    if (waiting.push(task) === 1) atEndOfTurn(run);
  };
}

/** What a promise resolves to; if that takes longer than `ms`, what `onSilence` returns or throws. The promise goes on. */
export async function within<T>(ms: number, promise: Promise<T>, onSilence: () => T): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  }).then(onSilence);
  try {
    return await Promise.race([promise, silence]);
  } finally {
    clearTimeout(timer);
  }
}

/** Maps a long list, some items in each turn. */
export async function mapInTurns<A, B>(items: readonly A[], perTurn: number, map: (item: A) => B): Promise<B[]> {
  const mapped: B[] = [];
  for (const [at, item] of items.entries()) {
    if (at % perTurn === perTurn - 1) await nextTurn();
    mapped.push(map(item));
  }
  return mapped;
}

/** How many names are sorted or merged in one turn: some milliseconds. */
const NAMES_PER_TURN = 4_000;

/** The different names, sorted. A hundred thousand take longer than other requests may wait. */
export async function sortInTurns(names: readonly string[]): Promise<readonly string[]> {
  let runs: (readonly string[])[] = [];
  for (let at = 0; at < names.length; at += NAMES_PER_TURN) {
    if (at > 0) await nextTurn();
    runs.push(names.slice(at, at + NAMES_PER_TURN).sort());
  }
  while (runs.length > 1) {
    const merged: (readonly string[])[] = [];
    for (let at = 0; at < runs.length; at += 2) merged.push(await merge(runs[at] ?? [], runs[at + 1] ?? []));
    runs = merged;
  }
  return (runs[0] ?? []).filter((name, at, all) => name !== all[at - 1]);
}

async function merge(left: readonly string[], right: readonly string[]): Promise<readonly string[]> {
  if (right.length === 0) return left;
  const merged: string[] = [];
  for (let [at, other] = [0, 0]; at < left.length || other < right.length; ) {
    const [one, two] = [left[at], right[other]];
    const isLeft = two === undefined || (one !== undefined && one <= two);
    if (isLeft) at++;
    else other++;
    merged.push((isLeft ? one : two) as string);
    if (merged.length % NAMES_PER_TURN === 0) await nextTurn();
  }
  return merged;
}
