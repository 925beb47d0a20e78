import { SHARED_BUCKET } from "@slotkeeper/protocol";
import { IndexedHeap } from "slotkeeper/parts";
import type { HostPolicy } from "../host-policy.ts";
import { isOlder, type Line, type WaiterEntry } from "./line.ts";

/** A line that may have no waiter yet. */
interface Places {
  readonly bucket: string;
  readonly places: number;
}

/**
 * Layer 2 of the funnel: which waiters have a place in the pool, and which one is next to get a place. Derived from the
 * records.
 *
 * WPOOL1 No line can fill the pool. A new waiter displaces the youngest waiter of the line with the most places, if its
 *   own line has at least two places fewer. The displaced waiter keeps its arrival time and waits outside. The
 *   difference is two because with one the two lines would displace each other in turn. Of several largest lines, the
 *   one with the youngest waiter loses.
 * WPOOL2 A free place goes to the line with the fewest places, and there to the oldest session.
 * WPOOL3 A session that returns after its instance died may displace a waiter that arrived after it, if its own line has
 *   fewer places than the line of that waiter. It had a place until its instance died.
 * WPOOL4 A waiter whose client is away keeps its place only while no other waiter needs it. After `collectMs` it gives the
 *   place to a waiter outside whose client is present (`admitWaiters`). It keeps its arrival time, and waits for a place
 *   again when its client returns. So clients that vanished cannot fill the pool.
 * WPOOL5 If a slot is free and no waiter inside can have it, a waiter inside whose bucket is at its limit or in its
 *   cooldown gives its place to a waiter outside whose bucket could be granted (`swap`). So lines that cannot be
 *   granted do not hide one that can. While no slot is free, all keep their places: no waiter could be granted.
 * The shared bucket and named semaphores have no limit per bucket. Each class has a pool of its own. Cost: O(log lines).
 */
export class WaiterPool {
  #size = 0;
  // Created when first needed: many hosts never have a waiter.
  #largest: IndexedHeap<"largestIndex", Line> | undefined;
  #fewest: IndexedHeap<"fewestIndex", Line> | undefined;
  /** Lines inside that could not be granted. */
  #stuck: IndexedHeap<"stuckIndex", Line> | undefined;
  /** Lines outside that could be granted. */
  #grantable: IndexedHeap<"grantableIndex", Line> | undefined;

  /** Waiters inside. */
  get size(): number {
    return this.#size;
  }

  /** Whether waiters outside wait for a place. */
  get hasOutsiders(): boolean {
    return (this.#fewest?.size ?? 0) > 0;
  }

  /** Call `leave` before and `enter` after any change of the line's places or of its waiters outside. */
  leave(line: Line): void {
    this.#size -= line.places;
    this.#largest?.remove(line);
    this.#fewest?.remove(line);
    this.#stuck?.remove(line);
    this.#grantable?.remove(line);
  }

  enter(line: Line): void {
    this.#size += line.places;
    if (line.places > 0) {
      this.#largest ??= new IndexedHeap("largestIndex", losesBefore);
      this.#largest.push(line);
      if (line.waiting > 0 && !line.isGrantable) {
        this.#stuck ??= new IndexedHeap("stuckIndex", losesBefore);
        this.#stuck.push(line);
      }
    }
    if (line.outsiders > 0) {
      this.#fewest ??= new IndexedHeap("fewestIndex", entersBefore);
      this.#fewest.push(line);
      if (line.isGrantableOutside) {
        this.#grantable ??= new IndexedHeap("grantableIndex", entersBefore);
        this.#grantable.push(line);
      }
    }
  }

  /**
   * Whether a new waiter of the line gets a place, and which waiter it displaces. `returnedTo`: the arrival time of a
   * session that returns.
   */
  admits(
    line: Places,
    policy: HostPolicy,
    returnedTo = Number.POSITIVE_INFINITY,
  ): { readonly isAdmitted: boolean; readonly displaces?: WaiterEntry } {
    if (line.places >= mostPlaces(policy, line)) return { isAdmitted: false };
    if (!this.isFull(policy)) return { isAdmitted: true };
    const largest = this.#largest?.peek();
    const youngest = largest?.young.peek();
    if (largest === undefined || youngest === undefined) return { isAdmitted: false };
    const fewer = youngest.record.arrivedAt > returnedTo ? 1 : 2;
    if (largest.places < line.places + fewer) return { isAdmitted: false };
    return { isAdmitted: true, displaces: youngest };
  }

  isFull(policy: HostPolicy): boolean {
    return this.#size >= policy.waiters;
  }

  /** The waiter that gets the next free place. Undefined: no waiter outside may enter. */
  next(policy: HostPolicy): WaiterEntry | undefined {
    return firstToEnter(this.#fewest, policy);
  }

  /** WPOOL5: which waiter inside gives its place to which one outside. Call it if a slot is free and the pool is full. */
  swap(policy: HostPolicy): { readonly leaves: WaiterEntry; readonly enters: WaiterEntry } | undefined {
    const leaves = this.#stuck?.peek()?.young.peek();
    const enters = firstToEnter(this.#grantable, policy);
    return leaves === undefined || enters === undefined ? undefined : { leaves, enters };
  }
}

function firstToEnter(
  waiting: IndexedHeap<"fewestIndex" | "grantableIndex", Line> | undefined,
  policy: HostPolicy,
): WaiterEntry | undefined {
  const first = waiting?.peek();
  if (waiting === undefined || first === undefined) return undefined;
  if (first.places < mostPlaces(policy, first)) return first.outside.peek();
  // The line of the shared bucket has no limit of its own, so it may come after a line that is at its limit.
  for (const line of waiting.values()) {
    if (line.places < mostPlaces(policy, line)) return line.outside.peek();
  }
  return undefined;
}

function mostPlaces({ waitersPerBucket }: HostPolicy, { bucket }: Places): number {
  return bucket === SHARED_BUCKET ? Number.POSITIVE_INFINITY : waitersPerBucket;
}

function losesBefore(a: Line, b: Line): boolean {
  if (a.places !== b.places) return a.places > b.places;
  return isOlder(b.young.peek() as WaiterEntry, a.young.peek() as WaiterEntry);
}

function entersBefore(a: Line, b: Line): boolean {
  if (a.places !== b.places) return a.places < b.places;
  return isOlder(a.outside.peek() as WaiterEntry, b.outside.peek() as WaiterEntry);
}
