import type { InstanceAbout, InstanceView } from "./host-store.ts";

/** Which instances have said that they live, and for how long that is believed. */
export class InstanceBoard {
  readonly #beats = new Map<
    string,
    { readonly seenAt: number; readonly until: number; readonly about: InstanceAbout }
  >();

  /** `ttlMs` 0: it leaves. */
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
