/** What the gates of one owner share. */
import { Deadlines } from "./deadlines.ts";
import type { ClosedError } from "./errors.ts";
import type { Gate } from "./gate.ts";
import type { HeldSlot } from "./slot.ts";

/** Counts since the start. Removing idle keys and names does not change them. */
export interface Counters {
  /** Slots acquired. */
  acquired: number;
  /** Slots released. */
  released: number;
  /** Slots that expired. */
  expired: number;
  /** Waits that timed out. */
  timedOut: number;
  /** Waits that a signal ended. */
  aborted: number;
  /** Refused because the semaphore was closed, the queue was full, or the width is above a smaller capacity. */
  rejected: number;
}

export class GateContext extends Deadlines {
  readonly counters: Counters = { acquired: 0, released: 0, expired: 0, timedOut: 0, aborted: 0, rejected: 0 };
  /** The error for all waiters and later calls once it is closed. */
  closed: ClosedError | undefined;
  /** Of a pool: the gate of all, which a slot of a key has to pass, too. */
  root: Gate | undefined;
  /** The slots held whose id was asked for, by their ids. */
  readonly slots = new Map<string, HeldSlot>();
}
