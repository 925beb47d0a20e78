import type { BucketQueue } from "../engine/bucket-queue.ts";
import { IndexedHeap } from "../indexed-heap.ts";

/** Without a cooldown to go by. */
const DEFAULT_DENY_MS = 3_000;

/** Layer 3: buckets that the store refused for reasons of their own are left alone for a while. */
export class DenyWindows {
  #untold: BucketQueue[] = [];
  readonly #denied = new IndexedHeap<"denyIndex", BucketQueue>("denyIndex", (a, b) => a.denyUntil < b.denyUntil);

  get nextEndAt(): number | undefined {
    return this.#denied.peek()?.denyUntil;
  }

  /** The jitter keeps the buckets of a cooldown from coming back all at once. */
  open(bucket: BucketQueue, cooldownMs: number, random: number, now: number): void {
    const lengthMs = cooldownMs > 0 ? cooldownMs : DEFAULT_DENY_MS;
    this.close(bucket);
    bucket.denyUntil = now + lengthMs * (1 + random / 3);
    this.#denied.push(bucket);
    this.#untold.push(bucket);
  }

  /** The reason of the denial ends by itself then: no use in waiting longer. */
  endBy(bucket: BucketQueue, at: number): void {
    if (!bucket.isDenied || bucket.denyUntil <= at) return;
    bucket.denyUntil = at;
    this.#denied.update(bucket);
  }

  close(bucket: BucketQueue): void {
    this.#denied.remove(bucket);
  }

  /** Closes the windows that are over. */
  *takeEnded(now: number): Iterable<BucketQueue> {
    for (let first = this.#denied.peek(); first !== undefined && first.denyUntil <= now; first = this.#denied.peek()) {
      this.#denied.remove(first);
      yield first;
    }
  }

  /** Those to be logged: each window once, when the next cycle finds somebody kept from trying by it. */
  takeUntold(): readonly BucketQueue[] {
    const untold = this.#untold.filter((bucket) => bucket.isDenied && bucket.pending > 0);
    if (this.#untold.length > 0) this.#untold = [];
    return untold;
  }
}
