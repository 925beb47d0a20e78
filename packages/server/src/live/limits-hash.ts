import { createHash } from "node:crypto";
import type { FairQueueConfig } from "@slotkeeper/protocol";
import { isTree } from "../config/layers.ts";

/**
 * The same for the same limits, wherever each came from; secrets and addresses have no part in it, for they may well
 * differ.
 */
export function limitsHash(limits: FairQueueConfig): string {
  const text = JSON.stringify(limits, (_, value: unknown) => (isTree(value) ? sorted(value) : value));
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}

function sorted(tree: object): object {
  return Object.fromEntries(Object.entries(tree).sort(([a], [b]) => (a < b ? -1 : 1)));
}
