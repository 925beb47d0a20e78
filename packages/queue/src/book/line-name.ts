import { DEFAULT_CLASS, type Demand } from "@slotkeeper/protocol";
import type { LeaseRecord, OfferRecord, WaiterRecord } from "./records.ts";

/**
 * A line is the waiters of one class and one bucket. Its name is the key of its account: the bucket, and before it the
 * class, unless that is the default. Neither has a line break.
 */
const BETWEEN = "\n";

export function nameOfLine(name: string, bucket: string): string {
  return name === DEFAULT_CLASS ? bucket : `${name}${BETWEEN}${bucket}`;
}

/** The line of a waiter. */
export function lineOfWaiter({ bucket, demand }: Pick<WaiterRecord, "bucket" | "demand">): string {
  return lineFor(bucket, demand);
}

/** The line that a lease or an offer was granted to. */
export function lineOfSlot({ bucket, charge }: Pick<LeaseRecord | OfferRecord, "bucket" | "charge">): string {
  return lineFor(bucket, charge?.asked);
}

function lineFor(bucket: string, demand: Demand | undefined): string {
  return demand?.class === undefined ? bucket : nameOfLine(demand.class, bucket);
}

export function partsOfLine(line: string): readonly [name: string, bucket: string] {
  const at = line.indexOf(BETWEEN);
  return at < 0 ? [DEFAULT_CLASS, line] : [line.slice(0, at), line.slice(at + 1)];
}
