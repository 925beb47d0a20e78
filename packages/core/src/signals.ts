/**
 * One listener per signal, for any number of waiters that share it. `addEventListener` searches the listeners that are
 * already there. With one listener each, 100,000 waiters on the same signal would take quadratic time. Here they are
 * members of a set.
 *
 * SIGNAL1  A signal has our listener if and only if a waiter uses it.
 * SIGNAL2  When a signal aborts, its waiters are rejected in order of arrival, each exactly once.
 * SIGNAL3  A signal of the caller's own may throw. A waiter that cannot listen is rejected with that error. A listener
 *     that cannot be removed has no effect.
 */

interface Waiter {
  /** The gate at which it waits. */
  readonly at: { reject(waiter: Waiter, how: "aborted" | "rejected", reason: unknown): void } | undefined;
}

/** The waiters of each signal. An entry is removed with its last waiter, so the map need not be a `WeakMap`. */
const groups = new Map<AbortSignal, Set<Waiter>>();

/** The number of signals that have our listener. */
export function watchedSignals(): number {
  return groups.size;
}

/** The listener on all signals. It is a function because Node wraps an object with `handleEvent` in an `async` function. */
function abort({ target }: Event): void {
  const signal = target as AbortSignal;
  for (const waiter of groups.get(signal) ?? []) waiter.at?.reject(waiter, "aborted", signal.reason);
}

/** May reject the waiter, so the caller must have set up its whole wait. */
export function watch(waiter: Waiter, signal: AbortSignal): void {
  const group = groups.get(signal) ?? new Set();
  const isFirst = group.size === 0;
  group.add(waiter);
  if (!isFirst) return;
  groups.set(signal, group);
  try {
    // With `once`, a listener that has run need not be removed. Removing one costs as much as adding one.
    signal.addEventListener("abort", abort, { once: true });
  } catch (error) {
    waiter.at?.reject(waiter, "rejected", error);
  }
}

export function unwatch(waiter: Waiter, signal: AbortSignal): void {
  const group = groups.get(signal);
  if (group?.delete(waiter) && group.size === 0) {
    groups.delete(signal);
    try {
      if (!signal.aborted) signal.removeEventListener("abort", abort);
    } catch {}
  }
}
