import { type ClassPolicies, type ClassPolicy, classOf, DEFAULT_CLASS } from "@slotkeeper/protocol";
import type { LeaseRecord, OfferRecord, WaiterRecord } from "./records.ts";

/** A class of a host for people and for metrics. It only reads. */
export interface ClassView extends ClassPolicy {
  readonly name: string;
  /** The slots of its leases and offers. */
  readonly inFlight: number;
  /** Waiters of the whole fleet. */
  readonly waiting: number;
  /** The slots that are its share now. Absent: not known here. */
  readonly share?: number;
}

/** What holds slots or waits. */
export type ClassUse = LeaseRecord | OfferRecord | WaiterRecord;

/**
 * The classes of a host, by name; none if it has no classes. A class that the limits no longer have is shown as long as it
 * is used. `shareOf` returns the share of a class, where the caller knows it.
 */
export function viewClasses(
  classes: ClassPolicies | undefined,
  uses: readonly ClassUse[],
  shareOf?: (name: string) => number | undefined,
): readonly ClassView[] {
  if (classes === undefined) return NONE;
  const counts = countsOf(uses);
  const names = new Set([...Object.keys(classes), ...counts.keys()]);
  return [...names].toSorted().map((name) => {
    const policy = Object.hasOwn(classes, name) ? (classes[name] as ClassPolicy) : RETIRED;
    const share = shareOf?.(name);
    return { name, ...policy, ...(counts.get(name) ?? UNUSED), ...(share === undefined ? {} : { share }) };
  });
}

/** The class of a lease, an offer or a waiter. */
export function classOfUse(use: ClassUse): string {
  return classOf(use.kind === "waiter" ? use.demand : use.charge?.asked);
}

/** The class of a record, where it is worth showing. */
export function shownClass(name: string): { readonly class?: string } {
  return name === DEFAULT_CLASS ? {} : { class: name };
}

function countsOf(uses: readonly ClassUse[]): ReadonlyMap<string, typeof UNUSED> {
  const counts = new Map<string, { inFlight: number; waiting: number }>();
  for (const use of uses) {
    const name = classOfUse(use);
    const { inFlight, waiting } = counts.get(name) ?? UNUSED;
    const isWaiting = use.kind === "waiter";
    counts.set(name, { inFlight: inFlight + (isWaiting ? 0 : use.width), waiting: waiting + (isWaiting ? 1 : 0) });
  }
  return counts;
}

const NONE: readonly ClassView[] = [];
const UNUSED: { readonly inFlight: number; readonly waiting: number } = { inFlight: 0, waiting: 0 };
/** A class that the limits no longer have. */
const RETIRED: ClassPolicy = { weight: 1, floor: 0 };
