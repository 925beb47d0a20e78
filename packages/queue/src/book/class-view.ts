import { type ClassPolicies, type ClassPolicy, classOf, DEFAULT_CLASS } from "@slotkeeper/protocol";
import type { ClassUses, LeaseRecord, OfferRecord, WaiterRecord } from "./records.ts";

/** A class of a host for people and for metrics. It only reads. */
export interface ClassView extends ClassPolicy {
  readonly name: string;
  /** The slots of its leases and offers. */
  readonly inFlight: number;
  /** Waiters of the whole fleet. */
  readonly waiting: number;
  /** The fair meter of its buckets. Absent: it was not used yet. */
  readonly progressMs?: number;
  /** The slots that are its share now. Absent: not known here. */
  readonly share?: number;
}

/** What holds slots or waits. */
export type ClassMember = LeaseRecord | OfferRecord | WaiterRecord;

/**
 * The classes of a host, by name; none if it has no classes. A class that the limits no longer have is shown as long as it
 * is used. `shareOf` returns the share of a class, where the caller knows it.
 */
export function viewClasses(
  classes: ClassPolicies | undefined,
  members: readonly ClassMember[],
  uses: ClassUses = {},
  shareOf?: (name: string) => number | undefined,
): readonly ClassView[] {
  if (classes === undefined) return NONE;
  const counts = countsOf(members);
  const names = new Set([...Object.keys(classes), ...counts.keys()]);
  return [...names].toSorted().map((name) => {
    const policy = Object.hasOwn(classes, name) ? (classes[name] as ClassPolicy) : RETIRED;
    const [progressMs, share] = [Object.hasOwn(uses, name) ? uses[name]?.progress : undefined, shareOf?.(name)];
    return {
      name,
      ...policy,
      ...(counts.get(name) ?? UNUSED),
      ...(progressMs === undefined ? {} : { progressMs }),
      ...(share === undefined ? {} : { share }),
    };
  });
}

/** The class of a lease, an offer or a waiter. */
export function classOfMember(member: ClassMember): string {
  return classOf(member.kind === "waiter" ? member.demand : member.charge?.asked);
}

/** The class of a record, where it is worth showing. */
export function shownClass(name: string): { readonly class?: string } {
  return name === DEFAULT_CLASS ? {} : { class: name };
}

function countsOf(members: readonly ClassMember[]): ReadonlyMap<string, typeof UNUSED> {
  const counts = new Map<string, { inFlight: number; waiting: number }>();
  for (const member of members) {
    const name = classOfMember(member);
    const { inFlight, waiting } = counts.get(name) ?? UNUSED;
    const isWaiting = member.kind === "waiter";
    counts.set(name, { inFlight: inFlight + (isWaiting ? 0 : member.width), waiting: waiting + (isWaiting ? 1 : 0) });
  }
  return counts;
}

const NONE: readonly ClassView[] = [];
const UNUSED: { readonly inFlight: number; readonly waiting: number } = { inFlight: 0, waiting: 0 };
/** A class that the limits no longer have. */
const RETIRED: ClassPolicy = { weight: 1, floor: 0 };
