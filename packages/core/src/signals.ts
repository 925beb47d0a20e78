/**
 * One listener per signal, however many waiters share it. Adding a listener costs a search through those already
 * there, so 100,000 waiters with a listener each on one signal are quadratic; here they are members of a set.
 *
 * SIGNAL1  A signal has our listener if and only if a waiter uses it.
 * SIGNAL2  When it aborts, its waiters are rejected in the order of their arrival, each exactly once.
 */

interface Waiter {
  /** Where it waits. */
  readonly at: { reject(waiter: Waiter, how: "aborted", reason: unknown): void } | undefined;
}

/** Who waits with which. An entry goes when its last waiter does, so the map may hold the signals firmly. */
const groups = new Map<AbortSignal, Set<Waiter>>();

/** How many signals carry our listener. */
export function watchedSignals(): number {
  return groups.size;
}

/** The listener on all of them. A function: of an object with `handleEvent` Node makes a function that is `async`. */
function abort({ target }: Event): void {
  const signal = target as AbortSignal;
  for (const waiter of groups.get(signal) ?? []) waiter.at?.reject(waiter, "aborted", signal.reason);
}

export function watch(waiter: Waiter, signal: AbortSignal): void {
  const group = groups.get(signal) ?? new Set();
  if (group.size === 0) {
    groups.set(signal, group);
    // Once: a listener that ran need not be removed, which costs as much as adding it.
    signal.addEventListener("abort", abort, { once: true });
  }
  group.add(waiter);
}

export function unwatch(waiter: Waiter, signal: AbortSignal): void {
  const group = groups.get(signal);
  if (group?.delete(waiter) && group.size === 0) {
    groups.delete(signal);
    if (!signal.aborted) signal.removeEventListener("abort", abort);
  }
}
