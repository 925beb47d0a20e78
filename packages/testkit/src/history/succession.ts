import { type History, leaseEnd, type Slot, sent, waitedUntil } from "./history.ts";

/** A slot that its client gave back, by release or by cancel. */
export interface GivenBack {
  readonly slot: Slot;
  /** When the first of these calls was sent. */
  readonly sentAt: number;
  /** When it was granted, at the earliest. */
  readonly grantedFrom: number;
}

/** A grant that was possible only because earlier slots had ended. */
export interface Succession {
  readonly slot: Slot;
  /** The earlier slots whose clients gave them back before this one arrived, in the order of sending. */
  readonly givenBack: readonly GivenBack[];
  /** At least this number of them had ended when the slot was granted. */
  readonly ended: number;
}

/** Times are sums of fractions. */
const ROUNDING_MS = 1;

/**
 * How much too early a grant may seem: an instance knows the store's time from its answers, so it is behind by the time
 * that an answer takes, and a slot may end at such a time.
 */
export function clockErrorMs({ facts }: History, host: string): number {
  return ROUNDING_MS + (facts.of(host).transitMs ?? 0);
}

/**
 * The grants among these slots that needed the end of others. Fences give the order of the grants. At the grant of a slot
 * fewer than `most` of the earlier ones were held; each counts once, whatever its width, which only weakens this. None of
 * those had ended by its lease, so the others had been given back.
 * Leaving an earlier slot out only weakens this: revoked ones are left out, and those in doubt after a fault. Cost: O(n w)
 * for w slots within the time of a lease.
 */
export function* successions(
  history: History,
  slots: Iterable<Slot>,
  most: (from: number, to: number) => number | undefined,
): Iterable<Succession> {
  const inOrder = [...new Set(slots)].filter(({ fence }) => !Number.isNaN(fence)).sort((a, b) => a.fence - b.fence);
  let earlier: (GivenBack & { readonly leaseUntil: number })[] = [];
  for (const slot of inOrder) {
    const { session, arrivedAt } = slot;
    earlier = earlier.filter(({ leaseUntil }) => leaseUntil > arrivedAt);
    const known = earlier.filter((one) => one.slot.session !== session && !isDoubted(history, one.slot, arrivedAt));
    const givenBack = known.filter(({ sentAt }) => sentAt <= arrivedAt).sort((a, b) => a.sentAt - b.sentAt);
    const limit = most(session.askedAt, arrivedAt) ?? Number.POSITIVE_INFINITY;
    const ended = Math.min(known.length - (limit - 1), givenBack.length);
    if (ended > 0) yield { slot, givenBack, ended };
    // What it needed had been given back before it was granted.
    const neededFrom = givenBack[ended - 1]?.sentAt ?? Number.NEGATIVE_INFINITY;
    const grantedFrom = Math.max(waitedUntil(history, session, arrivedAt), neededFrom);
    if (slot.revocations.length === 0) earlier.push(heldFrom(slot, grantedFrom));
  }
}

/** A lease lasts at least as long from its grant as the first answer says, however long the call had been held before. */
function heldFrom(slot: Slot, grantedFrom: number): GivenBack & { readonly leaseUntil: number } {
  const sentAt = Math.min(sent(slot.releases), sent(slot.session.cancels));
  const { leaseMs = 0 } = slot.grants[0] ?? {};
  return { slot, sentAt, grantedFrom, leaseUntil: Math.max(leaseEnd(slot), grantedFrom + (leaseMs || 0)) };
}

function isDoubted({ faults }: History, { session: { askedAt } }: Slot, at: number): boolean {
  return faults.doubtedFrom(askedAt) < at;
}
