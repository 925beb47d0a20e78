import type { InstanceNotice, InstanceView } from "./slot-store.ts";

interface Posted extends InstanceNotice {
  readonly postedAt: number;
}

/** Notices of instances, each until its time is over. A fleet is small: reading looks at all of them. */
export class InstanceBoard {
  readonly #notices = new Map<string, Posted>();

  put(notice: InstanceNotice, now: number): void {
    if (notice.ttlMs > 0) this.#notices.set(notice.instance, { ...notice, postedAt: now });
    else this.#notices.delete(notice.instance);
  }

  read(now: number): InstanceView[] {
    for (const { instance, postedAt, ttlMs } of this.#notices.values()) {
      if (postedAt + ttlMs <= now) this.#notices.delete(instance);
    }
    return Array.from(this.#notices.values(), ({ instance, postedAt, about }) => ({
      instance,
      seenAgoMs: now - postedAt,
      about,
    }));
  }
}
