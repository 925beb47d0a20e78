import { bucketLimit } from "../host-policy.ts";
import { BucketOrder, type OrderClass, type Ranked } from "../order/bucket-order.ts";
import type { AccountView } from "../order/contract.ts";
import { levelIn } from "../order/transitions.ts";
import { phaseFor } from "./breaker.ts";
import type { HostBook } from "./host-book.ts";
import type { Verdict, Waiter } from "./slot-store.ts";

/** A waiter of the batch that stands for a slot, and its place in the batch. */
export interface Standing {
  readonly waiter: Waiter;
  readonly at: number;
}

/** The batch's waiters of one bucket, oldest first. */
class Contender implements Ranked {
  readonly bucket: string;
  readonly queue: Standing[] = [];
  next = 0;
  inFlight = 0;
  weight = 1;
  usedMs = 0;
  asOf = 0;
  headAt = 0;
  orderIndex = -1;
  orderClass: OrderClass | undefined;

  constructor(bucket: string) {
    this.bucket = bucket;
  }

  /** Takes the account as it stands: after each grant the bucket holds one more. */
  refresh(view: AccountView, now: number): boolean {
    const head = this.queue[this.next];
    if (head === undefined) return false;
    this.inFlight = view.inFlight;
    this.usedMs = view.usedMs;
    this.asOf = now;
    this.weight = head.waiter.weight;
    this.headAt = head.waiter.arrivedAt;
    return true;
  }
}

/**
 * Layer seven for one batch: hands out the free slots of a host, best-ranked first, each grant counted before the next
 * is decided (I6 of the order). A bucket at its limit or in cooldown is skipped whole and keeps nobody waiting.
 * Cost: O(batch · log batch).
 */
export class GrantRound {
  readonly #book: HostBook;
  readonly #now: number;
  readonly #verdicts: Verdict[];
  readonly #grant: (waiter: Waiter, isProbe: boolean) => Verdict;

  constructor(book: HostBook, now: number, verdicts: Verdict[], grant: (waiter: Waiter, isProbe: boolean) => Verdict) {
    this.#book = book;
    this.#now = now;
    this.#verdicts = verdicts;
    this.#grant = grant;
  }

  run(standing: readonly Standing[]): void {
    // One alone need not be ranked: a free host, the commonest case.
    if (this.#book.policy.order === "given" || standing.length === 1) {
      for (const one of standing) if (this.#book.free > 0) this.#decide(one);
    } else this.#runRanked(standing);
    for (const { at } of standing) this.#verdicts[at] ??= { status: "WAIT", blockedBy: "host-limit" };
  }

  #runRanked(standing: readonly Standing[]): void {
    const { ledger, policy } = this.#book;
    const order = new BucketOrder<Contender>(policy.order === "fifo");
    for (const contender of contendersOf(standing)) {
      if (contender.refresh(viewOf(this.#book, contender.bucket, 1, this.#now), this.#now)) order.add(contender);
    }
    while (this.#book.free > 0) {
      const best = order.best(levelIn(ledger), this.#now);
      if (best === undefined) break;
      order.remove(best);
      const status = this.#decide(best.queue[best.next++] as Standing);
      if (status === "IP_TOO_MANY")
        for (; best.next < best.queue.length; best.next++) this.#decide(best.queue[best.next] as Standing);
      const view = viewOf(this.#book, best.bucket, best.weight, this.#now);
      if (best.refresh(view, this.#now)) order.add(best);
    }
  }

  #decide({ waiter, at }: Standing): Verdict["status"] {
    const verdict = this.#verdictFor(waiter);
    this.#verdicts[at] = verdict;
    return verdict.status;
  }

  #verdictFor(waiter: Waiter): Verdict {
    const { bucket, openMs } = waiter;
    const { breaker, policy, ledger } = this.#book;
    const isProbe = phaseFor(breaker.view(this.#now, policy.breaker), openMs) === "half-open";
    if (isProbe && this.#book.probes >= policy.breaker.halfOpenProbes) return { status: "WAIT", blockedBy: "breaker" };
    if ((ledger.accounts.get(bucket)?.inFlight ?? 0) >= bucketLimit(policy, bucket)) {
      return { status: "IP_TOO_MANY", blockedBy: "ip-limit", retryInMs: this.#firstEndInMs(bucket) };
    }
    const coolMs = this.#book.cooldownMs(bucket, this.#now);
    if (coolMs > 0) return { status: "IP_TOO_MANY", blockedBy: "cooldown", retryInMs: coolMs };
    return this.#grant(waiter, isProbe);
  }

  /** Scans the host's leases, at most its number of slots, and only for a bucket that is refused. */
  #firstEndInMs(bucket: string): number {
    let first = Number.POSITIVE_INFINITY;
    for (const lease of this.#book.leases.values()) {
      if (lease.account.bucket === bucket) first = Math.min(first, lease.endsAt);
    }
    return first - this.#now;
  }
}

function contendersOf(standing: readonly Standing[]): Iterable<Contender> {
  const contenders = new Map<string, Contender>();
  for (const one of standing) {
    let contender = contenders.get(one.waiter.bucket);
    if (contender === undefined) {
      contender = new Contender(one.waiter.bucket);
      contenders.set(one.waiter.bucket, contender);
    }
    contender.queue.push(one);
  }
  for (const { queue } of contenders.values()) queue.sort((a, b) => a.waiter.arrivedAt - b.waiter.arrivedAt);
  return contenders.values();
}

/** A bucket without an account would join at the meter. */
export function viewOf(book: HostBook, bucket: string, weight: number, now: number): AccountView {
  const account = book.ledger.accounts.get(bucket);
  if (account === undefined) return { bucket, inFlight: 0, usedMs: book.ledger.progress * weight };
  return {
    bucket,
    inFlight: account.inFlight,
    usedMs: account.usedMs + account.inFlight * (now - account.asOf),
  };
}
