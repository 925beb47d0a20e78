import type { InstanceView } from "@slotkeeper/queue";

/** What the instances say of themselves in one field, each value once. More than one: they differ. */
export function distinctOf(views: readonly Pick<InstanceView, "about">[], field: string): readonly unknown[] {
  return [...new Set(views.map(({ about }) => about[field]))];
}
