/** The state that the gates of one semaphore or pool share. */
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
  /** Waits that a signal or `clear` ended. */
  aborted: number;
  /** Calls refused: the semaphore is closed, the queue is full, or a `resize` made the capacity smaller than the width. */
  rejected: number;
}

export class GateContext extends Deadlines {
  readonly counters: Counters = { acquired: 0, released: 0, expired: 0, timedOut: 0, aborted: 0, rejected: 0 };
  /** Set by `close`: the error for all waiters and later calls. */
  closed: ClosedError | undefined;
  /** In a pool: the gate of the common limit. Every slot of a key also counts there. */
  root: Gate | undefined;
  /** Held slots whose id was read, by id. */
  readonly slots = new Map<string, HeldSlot>();
}
