import type { InstanceView } from "@slotkeeper/queue";

/** The distinct values of one field over all instances. More than one means that they differ. */
export function distinctOf(views: readonly Pick<InstanceView, "about">[], field: string): readonly unknown[] {
  return [...new Set(views.map(({ about }) => about[field]))];
}
