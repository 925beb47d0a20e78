import { IndexedHeap } from "../indexed-heap.ts";
import type { OrderClass, Ranked } from "../order/bucket-order.ts";
import type { AccountView } from "../order/contract.ts";
import type { Session } from "./session.ts";

const arrivedBefore = (a: Session, b: Session) => a.claims.arrivedAt < b.claims.arrivedAt;

/**
 * The sessions of one bucket at one host, and what the store last said of its account. The copy serves to choose whom to
 * send; the store ranks again by the truth. A copy that is too good costs a place in a batch; one that is too bad would
 * keep the bucket from being sent, so news that a slot was freed is believed at once.
 */
export class BucketQueue implements Ranked {
  readonly name: string;
  /** In the pool, client present: oldest first. */
  readonly ready = new IndexedHeap<"readyIndex", Session>("readyIndex", arrivedBefore);
  readonly outside = new IndexedHeap<"outsideIndex", Session>("outsideIndex", arrivedBefore);
  pending = 0;
  /** Places in the pool. */
  places = 0;
  // The account.
  weight: number;
  inFlight = 0;
  usedMs = 0;
  asOf: number;
  headAt = 0;
  orderIndex = -1;
  orderClass: OrderClass | undefined;
  #freedInCall = -1;
  #freedMeanwhile = 0;
  // The deny window.
  denyUntil = 0;
  denyIndex = -1;
  denyReason: "ip-limit" | "cooldown" = "ip-limit";
  // The weighted scheduler.
  waitCount = 0;
  waitCountedAt = Number.NEGATIVE_INFINITY;
  virtualTime: number;
  turnIndex = -1;
  /** In the heap of buckets with somebody outside. */
  offerIndex = -1;
  idleAt = 0;
  idleIndex = -1;

  constructor(name: string, weight: number, virtualTime: number, now: number) {
    this.name = name;
    this.weight = weight;
    this.virtualTime = virtualTime;
    this.asOf = now;
  }

  get isDenied(): boolean {
    return this.denyIndex !== -1;
  }

  /** Somebody of it may be sent to the store now. */
  get isTryable(): boolean {
    return this.ready.size > 0 && !this.isDenied;
  }

  /** A slot of it was freed since that call was made: the answer may not know. */
  wasFreedIn(call: number): boolean {
    return this.#freedInCall === call;
  }

  /** `call`: which call the answer is to. Slots freed since it was made may not be in it. */
  setAccount({ inFlight, usedMs }: AccountView, call: number, now: number): void {
    const meanwhile = this.wasFreedIn(call) ? this.#freedMeanwhile : 0;
    this.inFlight = Math.max(0, inFlight - meanwhile);
    this.usedMs = usedMs;
    this.asOf = now;
  }

  freed(call: number, now: number): void {
    this.changeInFlight(-1, now);
    this.#freedMeanwhile = this.wasFreedIn(call) ? this.#freedMeanwhile + 1 : 1;
    this.#freedInCall = call;
  }

  changeInFlight(by: 1 | -1, now: number): void {
    this.usedMs += this.inFlight * (now - this.asOf);
    this.asOf = now;
    this.inFlight = Math.max(0, this.inFlight + by);
  }
}
