import { CapacityMismatchError } from "slotkeeper";
import type { Due } from "../agenda.ts";
import type { BreakerView } from "../store/slot-store.ts";
import type { EngineContext } from "./context.ts";
import type { HostQueue } from "./host-queue.ts";

/**
 * Layer 1 of the funnel, for a caller who is not a session yet. What was heard within a poll interval is believed, and
 * callers who ask at the same time share one question. A store that fails, or has not answered within an interval, does
 * not keep the caller from queueing: the cycle asks again.
 */
export async function checkBreaker(
  host: HostQueue,
  engine: EngineContext,
  limit: number | undefined,
): Promise<BreakerView> {
  const { clock } = engine;
  const { pollIntervalMs } = engine.options();
  const isKnown = clock.now() - host.breakerAt < pollIntervalMs && limit === undefined;
  if (!isKnown) {
    host.checking ??= ask(host, engine).finally(() => {
      host.checking = undefined;
    });
    await firstOf(host.checking, engine, pollIntervalMs);
  }
  const capacity = host.pending > 0 ? host.capacity : host.storedCapacity;
  if (limit !== undefined && capacity !== undefined && capacity !== limit) {
    throw new CapacityMismatchError(host.hostname ?? host.key, capacity, limit);
  }
  return breakerNow(host, clock.now());
}

/** What was heard of the breaker, moved on to now. */
export function breakerNow({ breaker, breakerAt }: HostQueue, now: number): BreakerView {
  return breaker.phase === "closed" ? breaker : { ...breaker, openForMs: breaker.openForMs + now - breakerAt };
}

async function ask(host: HostQueue, engine: EngineContext): Promise<void> {
  const { store, clock } = engine;
  try {
    const { breaker, capacity } = await store.checkThrottle({ host: host.key, policy: host.policy });
    host.hear(breaker, clock.now());
    host.storedCapacity = capacity;
  } catch (error) {
    host.isStoreDown = true;
    engine.emit({ type: "store-error", host: host.key, operation: "checkThrottle", error });
  }
}

async function firstOf(asked: Promise<void>, { agenda, clock }: EngineContext, waitMs: number): Promise<void> {
  const pause: Due = { agendaIndex: -1, dueAt: 0, onDue: () => {} };
  const paused = new Promise<void>((resolve) => {
    pause.onDue = resolve;
  });
  agenda.schedule(pause, clock.now() + waitMs);
  await Promise.race([asked, paused]);
  agenda.cancel(pause);
}
