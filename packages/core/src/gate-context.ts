/** What the gates of one owner share. */
import { Deadlines } from "./deadlines.ts";
import type { ClosedError } from "./errors.ts";
import type { HeldSlot } from "./slot.ts";

/** Since the beginning, sweeps or not. */
export interface Counters {
  acquired: number;
  released: number;
  expired: number;
  timedOut: number;
  aborted: number;
  /** Refused: closed, queue full, or too wide after a shrink. */
  rejected: number;
}

export class GateContext extends Deadlines {
  readonly counters: Counters = { acquired: 0, released: 0, expired: 0, timedOut: 0, aborted: 0, rejected: 0 };
  /** The error for all waiters and later calls once it is closed. */
  closed: ClosedError | undefined;
  /** The slots held whose id was asked for. */
  readonly byId = new Map<string, HeldSlot>();
  /** To be called when nothing is held. */
  readonly onIdle: (() => void)[] = [];
}
