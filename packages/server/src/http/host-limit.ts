import type { ServiceContext } from "./service-context.ts";

/** Whether a call about this host would exceed the limit of known hosts. */
export function isHostTooMany(host: string, { queue, live }: Pick<ServiceContext, "queue" | "live">): boolean {
  return queue.hostCount >= live.config.settings.limits.hosts && queue.glance(host) === undefined;
}
