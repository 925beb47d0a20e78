import { createHash } from "node:crypto";
import type { FairQueueConfig } from "@slotkeeper/protocol";
import { isTree } from "../config/layers.ts";

/**
 * Equal limits have the same hash, wherever each of them comes from. Secrets and addresses are not included, because
 * they may differ between instances.
 */
export function limitsHash(limits: FairQueueConfig): string {
  const text = JSON.stringify(limits, (_, value: unknown) => (isTree(value) ? sorted(value) : value));
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}

function sorted(tree: object): object {
  return Object.fromEntries(Object.entries(tree).sort(([a], [b]) => (a < b ? -1 : 1)));
}
