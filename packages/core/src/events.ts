/** Events of a semaphore, and log lines for them. */
import { callForeign } from "./foreign-call.ts";
import type { Gate } from "./gate.ts";
import type { SlotPolicy } from "./policy.ts";

/** What happened. `SemaphoreEvent.type` is one of these. */
export type SemaphoreEventType = "acquired" | "released" | "expired" | "timed-out" | "aborted" | "closed" | "resized";

/**
 * What `onEvent` receives: one record for each slot acquired, released or expired, each wait that timed out or was
 * aborted, and each `resize` and `close`.
 */
export interface SemaphoreEvent {
  /** What happened. */
  readonly type: SemaphoreEventType;
  /** The semaphore's name, if it has one. */
  readonly name: string | undefined;
  /** The key of the slot or wait, in a `KeyedSemaphore` or `SlotPool`. */
  readonly key: unknown;
  /** When it happened, in milliseconds of the semaphore's clock. */
  readonly at: number;
  /** How long the caller waited, in milliseconds: for `acquired`, `timed-out` and `aborted`. */
  readonly waitedMs: number | undefined;
  /** The slot's number: for `acquired`, `released` and `expired`. */
  readonly number: number | undefined;
  /** The largest possible `number`: the capacity of the semaphore, the key or, in a `SlotPool`, the pool. */
  readonly capacity: number;
}

export function emit(
  { name, onEvent }: SlotPolicy,
  { key, root, context }: Gate,
  type: SemaphoreEventType,
  waitedMs?: number,
  number?: number,
): void {
  const { capacity } = root;
  if (onEvent) callForeign(() => onEvent({ type, name, key, at: context.clock.now(), waitedMs, number, capacity }));
}

/** The logger that `logEvents` writes to: `console`, or any object with these two methods. */
export interface EventLogger {
  /** Gets a line for each slot acquired or released. */
  info(message: string): void;
  /** Gets a line for each slot that expired. */
  warn(message: string): void;
}

/**
 * Returns an `onEvent` that writes a line for each slot acquired or released, and a warning for each slot that expired.
 *
 * @example
 * ```ts
 * import { logEvents, Semaphore } from "slotkeeper";
 *
 * const db = new Semaphore(5, { name: "db", onEvent: logEvents(console) });
 * await db.run(() => {}); // semaphore db: acquired slot 1 of 5 in 0 ms
 * ```
 */
export function logEvents(logger: EventLogger): (event: SemaphoreEvent) => void {
  return ({ type, name, waitedMs, number, capacity }) => {
    const line = `semaphore ${name ?? "(unnamed)"}: ${type} slot ${number} of ${capacity}`;
    if (type === "expired") logger.warn(line);
    else if (number) logger.info(waitedMs === undefined ? line : `${line} in ${Math.round(waitedMs)} ms`);
  };
}
