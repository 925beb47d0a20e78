import { BUCKET_KEY, enforcedSlotsOf, holdsBack, type KeyPolicy, SHARED_BUCKET } from "@slotkeeper/protocol";
import { IndexedHeap } from "slotkeeper/parts";
import { isOlder, type WaiterEntry } from "./line.ts";
import type { WaiterRecord } from "./records.ts";

/**
 * The parts of the ladder of keys (`ladder.ts`): a `KeyUse` for each value of a key, in it a `KeyLine` for each class, and
 * there a `Rung` for each waiter. The ladder moves the waiters. A `KeyLine` has waiters of all buckets, unlike a `Line`.
 */

/** One waiter at one rung. */
export interface Rung {
  readonly entry: WaiterEntry;
  readonly line: KeyLine;
  rungIndex: number;
}

/** Of a waiter that is not on the ladder. */
export const NO_RUNGS: readonly Rung[] = [];

/** What the requests with one value of a key hold, and the limits of the key. */
export class KeyUse {
  readonly name: string;
  readonly value: string;
  /** By class. */
  readonly lines = new Map<string, KeyLine>();
  inFlight = 0;
  /** Undefined: the host does not have this key any more. */
  key: KeyPolicy | undefined;
  level = -1;

  constructor(name: string, value: string) {
    this.name = name;
    this.value = value;
  }

  hasSlots(width: number): boolean {
    return this.key === undefined || this.inFlight + width <= enforcedSlotsOf(this.key, this.value);
  }
}

/** The waiters of one class with one value of a key. */
export class KeyLine {
  readonly use: KeyUse;
  readonly ofClass: string;
  readonly waiting = new IndexedHeap<"rungIndex", Rung>("rungIndex", standsBefore);
  /** How many waiters of the class have this value, at any rung. */
  climbers = 0;
  /** The oldest, if it has moved on. */
  passed: Rung | undefined;
  /** When the oldest may move on or leave, without another event. */
  wakeAt = Number.POSITIVE_INFINITY;
  isDirty = false;
  wakeIndex = -1;

  constructor(use: KeyUse, ofClass: string) {
    this.use = use;
    this.ofClass = ofClass;
  }

  get front(): WaiterRecord | undefined {
    return this.waiting.peek()?.entry.record;
  }
}

export type Asking = Pick<WaiterRecord, "bucket" | "demand">;

/** The value of a request for a key. Undefined: the key does not limit it. */
export function valueOf({ name }: KeyPolicy, { bucket, demand }: Asking): string | undefined {
  if (name === BUCKET_KEY) return bucket === SHARED_BUCKET ? undefined : bucket;
  const keys = demand?.keys;
  return keys !== undefined && Object.hasOwn(keys, name) ? keys[name] : undefined;
}

/** LADDER5. Undefined: the request has no rung of this key. */
export function rungValue(key: KeyPolicy, asking: Asking): string | undefined {
  const value = valueOf(key, asking);
  return value !== undefined && holdsBack(key, value) ? value : undefined;
}

function standsBefore(a: Rung, b: Rung): boolean {
  return isOlder(a.entry, b.entry);
}
