/** Emits the events of a limiter. They have the form of semaphore events. */
import type { SemaphoreEvent } from "../events.ts";
import type { LimiterPolicy } from "./options.ts";

/** `onEvent` is user code. If it throws or rejects, the error is ignored. */
export function emitFrom({ name, onEvent, clock }: LimiterPolicy, what: Omit<SemaphoreEvent, "name" | "at">): void {
  try {
    const result: unknown = onEvent?.({ ...what, name, at: clock.now() });
    (result as Partial<Promise<unknown>> | undefined)?.catch?.(() => {});
  } catch {}
}
