/**
 * One listener per signal, however many waiters share it. Adding a listener costs a search through those already
 * there, so 100,000 waiters with a listener each on one signal are quadratic; here they are members of a set.
 *
 * I1  A signal has our listener if and only if somebody waits with it.
 * I2  When it aborts, its waiters are told in the order of their arrival, each exactly once.
 */
import type { Ticket } from "./ticket.ts";

/** Those who wait with one signal. */
class SignalGroup extends Set<Ticket> {
  /** A function: of an object with `handleEvent` Node makes a function that is `async`. */
  readonly listener = (): void => {
    for (const ticket of this) ticket.at?.refuse(ticket, "aborted", ticket.waitSignal?.reason);
  };
}

/** Only signals that somebody waits with: an entry goes when its last waiter does, so the map may hold them firmly. */
const groups = new Map<AbortSignal, SignalGroup>();

/** How many signals carry our listener. */
export function watchedSignals(): number {
  return groups.size;
}

export function watch(ticket: Ticket, signal: AbortSignal): void {
  let group = groups.get(signal);
  if (!group) {
    group = new SignalGroup();
    groups.set(signal, group);
    // Once: a listener that has heard the abort need not be removed, which costs as much as adding it.
    signal.addEventListener("abort", group.listener, { once: true });
  }
  group.add(ticket);
}

export function unwatch(ticket: Ticket, signal: AbortSignal): void {
  const group = groups.get(signal);
  if (group?.delete(ticket) && group.size === 0) {
    groups.delete(signal);
    if (!signal.aborted) signal.removeEventListener("abort", group.listener);
  }
}
