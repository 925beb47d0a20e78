/** The events of a limiter are those of a semaphore. */
import type { SemaphoreEvent } from "../events.ts";
import type { LimiterPolicy } from "./options.ts";

/** `onEvent` is foreign code: whatever it throws, now or later, changes nothing. */
export function emitFrom({ name, onEvent, clock }: LimiterPolicy, what: Omit<SemaphoreEvent, "name" | "at">): void {
  try {
    const result: unknown = onEvent?.({ ...what, name, at: clock.now() });
    (result as Partial<Promise<unknown>> | undefined)?.catch?.(() => {});
  } catch {}
}
