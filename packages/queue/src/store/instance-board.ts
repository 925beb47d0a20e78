import type { InstanceAbout, InstanceView } from "./host-store.ts";

/** The last beat of each instance, and how long it is valid. */
export class InstanceBoard {
  readonly #beats = new Map<
    string,
    { readonly seenAt: number; readonly until: number; readonly about: InstanceAbout }
  >();

  /** `ttlMs` 0: the instance stops. */
  put(instance: string, ttlMs: number, about: InstanceAbout, now: number): void {
    if (ttlMs <= 0) this.#beats.delete(instance);
    else this.#beats.set(instance, { seenAt: now, until: now + ttlMs, about });
  }

  read(now: number): InstanceView[] {
    const views: InstanceView[] = [];
    for (const [instance, { seenAt, until, about }] of this.#beats) {
      if (until <= now) this.#beats.delete(instance);
      else views.push({ instance, seenAgoMs: now - seenAt, about });
    }
    return views;
  }
}
